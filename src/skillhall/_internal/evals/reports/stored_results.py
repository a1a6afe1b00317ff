"""Reads the newest results of a skill from its workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN
from skillhall._internal.evals.eval_workspace import TRANSCRIPT_FILE
from skillhall._internal.evals.gates import (
    METRICS,
    collect_metrics,
    collect_trigger_metrics,
    evaluate_gates,
    serialize_gate,
)
from skillhall._internal.evals.grading_files import read_graded_run
from skillhall._internal.evals.reports.result_overview import find_models
from skillhall._internal.evals.reports.skill_results import SkillResults
from skillhall._internal.evals.summary_files import (
    read_subject,
    serialize_summary,
    summarize_iteration,
)
from skillhall._internal.evals.triggers.trigger_files import find_result, serialize_result
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.sources.folder.bundle_reader import open_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.evals.eval_records import GradedRun, RunKey
    from skillhall._internal.evals.eval_summary import EvalSummary
    from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
    from skillhall._internal.evals.gates import Gate, MetricValues
    from skillhall._internal.evals.reports.skill_results import Transcript
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult


def read_skill_results(
    name: str,
    folder: str,
    workspace: EvalWorkspace,
    gates: Sequence[Gate] = (),
    iteration: EvalIteration | None = None,
) -> SkillResults:
    """Return the newest results of the skill in `folder`.

    They may be from an older version. `iteration` has the test cases to show instead of the newest
    ones. Gates fail for results of an older version.
    Raises: SkillhallError if a file of the skill cannot be read.
    """
    iterations = workspace.iterations()
    graded = _find_graded(iterations if iteration is None else [iteration])
    summary = None if graded is None else summarize_iteration(graded)
    triggers = find_result(iterations)
    digests = {summary.subject.skill_digest} if summary else set()
    digests |= {triggers.skill_digest} if triggers else set()
    current = open_bundle(FolderHandle(folder), ALL_FILES_SCAN).digest()
    return SkillResults(
        skill_name=name,
        summary=summary,
        runs=() if graded is None else GradedRuns(graded),
        prompts={} if graded is None else _read_prompts(graded),
        triggers=triggers,
        models=() if graded is None else find_models(workspace, read_subject(graded)),
        gates=evaluate_gates(gates, _collect_values(summary, triggers, current)),
        is_current=digests <= {current},
        read_transcript=_build_transcript_reader(graded),
    )


def _find_graded(iterations: Sequence[EvalIteration]) -> EvalIteration | None:
    """Return the newest graded iteration.

    One with selected cases is returned only if there is no other.
    """
    graded = [one for one in reversed(iterations) if any(GradedRuns(one))]
    subjects = [read_subject(one) for one in graded]
    for one, subject in zip(graded, subjects, strict=True):
        if subject.is_complete and subject.skill_digest == subjects[0].skill_digest:
            return one
    return next(iter(graded), None)


def _collect_values(
    summary: EvalSummary | None, triggers: TriggerResult | None, digest: str
) -> MetricValues:
    """Return the metrics of the current version, or why there are none."""
    values: MetricValues = {} if summary is None else collect_metrics(summary)
    if summary is not None and summary.subject.skill_digest != digest:
        values = dict.fromkeys(METRICS, "the results are of another version of the skill")
    return {**values, **collect_trigger_metrics(triggers, digest)}


def serialize_skill_results(results: SkillResults) -> dict[str, object]:
    """Return the results of a skill for JSON output."""
    summary, triggers = results.summary, results.triggers
    return {
        "name": results.skill_name,
        "is_current": results.is_current,
        "summary": None if summary is None else serialize_summary(summary),
        "triggers": None if triggers is None else serialize_result(triggers),
        "models": [one.serialize() for one in results.models],
        "gates": [serialize_gate(gate) for gate in results.gates],
    }


@dataclass(frozen=True, slots=True)
class GradedRuns:
    """The graded runs of an iteration. They are read each time, so memory stays small."""

    iteration: EvalIteration

    def __iter__(self) -> Iterator[GradedRun]:
        """Yield the runs in the order of their folders."""
        for stored in self.iteration.iter_runs():
            graded = read_graded_run(self.iteration, stored)
            if graded is not None:
                yield graded


def _read_prompts(iteration: EvalIteration) -> dict[str, str]:
    """Return the prompts of the cases in the plan, by id."""
    cases = iteration.read_plan().get("cases")
    return {
        str(case.get("id", "")): str(case.get("prompt", ""))
        for case in (cases if isinstance(cases, list) else ())
        if isinstance(case, dict)
    }


def _build_transcript_reader(iteration: EvalIteration | None) -> Callable[[RunKey], Transcript]:
    def read(key: RunKey) -> Transcript:
        if iteration is None:
            return ()
        entries = iteration.read_json(f"{iteration.run_path(key)}/{TRANSCRIPT_FILE}")
        return [
            one for one in (entries if isinstance(entries, list) else ()) if isinstance(one, dict)
        ]

    return read
