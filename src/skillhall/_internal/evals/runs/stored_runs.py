"""Stored results of runs, found by digest in all iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.eval_workspace import TRANSCRIPT_FILE
from skillhall._internal.evals.grading_files import read_verdicts, write_verdicts
from skillhall._internal.evals.runs.evaluated_skill import read_files
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.strict_json import InvalidJson, parse_json
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.evals.eval_records import RunKey, RunRecord
    from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
    from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedRun

# Failed runs are repeated, and each command decides again which runs are skipped.
_REUSABLE = frozenset({RunStatus.COMPLETED, RunStatus.LIMITED})


class StoredRunLocation(NamedTuple):
    """Where a result is stored."""

    iteration: EvalIteration
    key: RunKey


class StoredRunIndex:
    """The reusable results of iterations, by digest and repeat."""

    def __init__(self, iterations: Iterable[EvalIteration]) -> None:
        """Read all results; those of later iterations replace those of earlier ones."""
        self._locations: dict[tuple[str, int], StoredRunLocation] = {}
        for iteration in iterations:
            for stored in iteration.iter_runs():
                record = stored.record
                if record.status in _REUSABLE:
                    location = StoredRunLocation(iteration, record.key)
                    self._locations[stored.digest, record.key.repeat] = location

    def find(self, run: PlannedRun) -> StoredRunLocation | None:
        """Return the stored result of an equal run; `None` if there is none."""
        return self._locations.get((run.digest, run.key.repeat))


def open_iteration(workspace: EvalWorkspace, plan: EvalPlan) -> EvalIteration:
    """Return the last iteration if it has the same plan, else a new one. Raises: OSError."""
    iterations = workspace.iterations()
    if iterations and iterations[-1].read_plan().get("digest") == plan.digest:
        return iterations[-1]
    return workspace.create_iteration(plan.serialize(), plan.repeats)


def copy_stored_run(
    source: StoredRunLocation, run: PlannedRun, target: EvalIteration
) -> RunRecord | None:
    """Copy a result and its verdicts to an iteration; return `None` if unreadable.

    Raises: OSError.
    """
    stored = source.iteration.read_run(source.key)
    if stored is None:
        return None
    if source.iteration == target and source.key == run.key:
        return stored.record
    folder = source.iteration.outputs_folder(source.key)
    try:
        outputs = read_files(open_bundle(FolderHandle(str(folder)), ALL_FILES_SCAN))
    except SkillhallError:
        return None
    data = source.iteration.read_bytes(f"{source.iteration.run_path(source.key)}/{TRANSCRIPT_FILE}")
    try:
        transcript = parse_json(data or b"[]", unique_keys=False)
    except InvalidJson:
        return None
    record = replace(stored.record, key=run.key)
    target.write_run(record, run.digest, outputs, transcript)
    verdicts = read_verdicts(source.iteration, stored.record)
    if verdicts is not None:
        write_verdicts(target, record, verdicts)
    return record
