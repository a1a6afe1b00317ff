"""Recordings: iterations whose runs are graded again without running an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.eval_workspace import PLAN_FILE, EvalIteration, EvalWorkspace
from skillhall._internal.evals.run_agents.run_agent import RunOutcome
from skillhall._internal.evals.run_files import read_field
from skillhall._internal.evals.runs.case_files import select_input_files
from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedCase
from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill, read_evaluated_skill
from skillhall._internal.evals.runs.run_limits import RunLimits
from skillhall._internal.evals.runs.run_preparation import read_cases
from skillhall._internal.evals.triggers.trigger_files import find_result, write_trigger_result
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.evals.run_agents.run_agent import RunTask

_NOT_RECORDED = "no run is recorded for this version of the skill, the case and its input files"


class ReplayAgent:
    """Agent of a recording. It runs nothing, and skips cases that were not recorded."""

    @property
    def identity(self) -> Mapping[str, object]:
        """Not used: a plan of a recording has the identity of the recorded agent."""
        return {"kind": "replay"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        pass

    async def run(self, task: RunTask) -> RunOutcome:
        """Skip the run: no result of it is recorded."""
        del task
        return RunOutcome(status=RunStatus.SKIPPED, reason=_NOT_RECORDED)


def list_recorded_iterations(path: str, skill_path: str) -> list[EvalIteration]:
    """Return the recorded iterations of a skill, the oldest first.

    The path is that of an iteration, a workspace, or a folder of workspaces.
    Raises: ConfigInvalid if there are none.
    """
    folder = Path(path).absolute()
    if (folder / PLAN_FILE).is_file():
        return [EvalIteration(folder).with_planned_repeats()]
    own = EvalWorkspace(folder / EvalWorkspace.of_skill(skill_path).path.name)
    iterations = EvalWorkspace(folder).iterations() or own.iterations()
    if not iterations:
        raise ConfigInvalid(path, "the folder has no recorded runs of the skill")
    return iterations


def find_recording(iterations: Sequence[EvalIteration]) -> EvalIteration:
    """Return the last iteration that has runs of cases, not only trigger queries."""
    with_cases = (one for one in reversed(iterations) if "cases" in one.read_plan())
    return next(with_cases, iterations[-1])


def copy_recorded_triggers(iterations: Sequence[EvalIteration], target: EvalIteration) -> None:
    """Copy the newest recorded trigger result, unless the target has one. Raises: OSError."""
    recorded = find_result(iterations)
    if recorded is not None and find_result([target]) is None:
        write_trigger_result(target, recorded)


def read_recorded_plan(
    name: str, path: str, recording: EvalIteration, case_ids: Sequence[str] = ()
) -> EvalPlan:
    """Return the plan of the current skill with the recorded agent and settings.

    Raises: ConfigInvalid if the recording is invalid, SkillhallError.
    """
    file = str(recording.path / PLAN_FILE)
    plan = recording.read_plan()
    try:
        limits = read_field(plan, "limits", dict)
        skill = read_evaluated_skill(name, path)
        cases = read_cases(skill, case_ids)
        old = plan.get("old_skill")
        return EvalPlan(
            skill=skill,
            old_skill=None if old is None else _read_skill(old),
            other_skills=tuple(map(_read_skill, read_field(plan, "other_skills", list))),
            cases=tuple(
                PlannedCase(case=case, inputs=select_input_files(case, skill.files))
                for case in cases
            ),
            repeats=recording.repeats,
            agent=read_field(plan, "agent", dict),
            limits=RunLimits(
                timeout=float(limits["timeout"]),
                max_requests=int(limits["max_requests"]),
                max_output=int(limits["max_output"]),
            ),
            is_complete=len(cases) == len(read_cases(skill)),
        )
    except (KeyError, TypeError, ValueError):
        raise ConfigInvalid(file, "it is not an eval plan") from None


def _read_skill(value: object) -> EvaluatedSkill:
    if not isinstance(value, dict):
        raise TypeError
    return EvaluatedSkill(
        name=read_field(value, "name", str),
        folder=read_field(value, "folder", str),
        label=read_field(value, "label", str),
        digest=read_field(value, "digest", str),
        agent_digest=read_field(value, "agent_digest", str),
    )
