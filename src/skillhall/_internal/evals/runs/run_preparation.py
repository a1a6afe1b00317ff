"""Preparation of a plan: reads cases and versions of a skill, applies the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.project_gate import open_trust_gate
from skillhall._internal.evals.runs.case_files import select_input_files
from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedCase
from skillhall._internal.evals.runs.evaluated_skill import (
    EvaluatedSkill,
    contains_scripts,
    read_evaluated_skill,
    read_files,
    read_other_version,
)
from skillhall._internal.evals.runs.run_limits import RunLimits
from skillhall._internal.policy.trust.trust_action import LOAD_EVERYTHING
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.evals.eval_file import parse_eval_file
from skillhall.errors import SkillNotApproved, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.evals.eval_file import EvalCase

NEEDS_SCRIPTS = "the case needs scripts of the skill, which are not allowed to run"
COULD_RUN_SCRIPTS = "the agent could run scripts of a skill, which are not allowed to run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The runs of a skill's evals."""

    repeats: int = 3
    case_ids: Sequence[str] = ()  # all if empty
    against: str = ""  # another version: a folder or a git revision
    catalog: Sequence[str] = ()  # folders with other skills that the agent has
    limits: RunLimits = field(default_factory=RunLimits)
    allows_scripts: bool = False
    # Whether scripts run only through our own tool. An external agent may run any script it finds.
    has_script_tool: bool = True


def prepare_plan(
    name: str, path: str, agent: Mapping[str, object], options: RunOptions, settings: Settings
) -> EvalPlan:
    """Return the plan for the skill at `path`. `agent` is the identity of the agent.

    Raises: SkillNotApproved if a policy or a revocation holds one of the versions, SkillhallError.
    """
    _check_clearance(path, settings)
    skill = read_evaluated_skill(name, path)
    old_skill = _read_old_skill(skill, path, options.against, settings)
    other_skills = _read_other_skills(skill, options.catalog, settings)
    skills = [skill, *other_skills, *([] if old_skill is None else [old_skill])]
    has_scripts = any(one.has_scripts for one in skills)
    cases = read_cases(skill, options.case_ids)
    return EvalPlan(
        skill=skill,
        old_skill=old_skill,
        other_skills=other_skills,
        cases=tuple(_plan_case(case, skill, options, has_scripts=has_scripts) for case in cases),
        repeats=options.repeats,
        agent=agent,
        limits=options.limits,
        is_complete=len(cases) == len(read_cases(skill)),
    )


def read_cases(skill: EvaluatedSkill, case_ids: Sequence[str] = ()) -> list[EvalCase]:
    """Return the cases of a skill with these ids, else all."""
    data, _ = skill.files[EVALS_PATH]
    cases = parse_eval_file(data, skill.name).cases
    return [case for case in cases if not case_ids or case.id in case_ids]


def _plan_case(
    case: EvalCase, skill: EvaluatedSkill, options: RunOptions, *, has_scripts: bool
) -> PlannedCase:
    """Return a case with its input files. Raises: UnsafePath."""
    inputs = select_input_files(case, skill.files)
    # Scripts among the input files come with the skill, too.
    has_scripts = has_scripts or contains_scripts(inputs)
    reason = _find_skip_reason(case, options, has_scripts=has_scripts)
    return PlannedCase(case=case, inputs=inputs, skip_reason=reason)


def _find_skip_reason(case: EvalCase, options: RunOptions, *, has_scripts: bool) -> str:
    """Return why a case is not run in any arm; "" if it is."""
    if options.allows_scripts:
        return ""
    if case.needs_scripts:
        return NEEDS_SCRIPTS
    return COULD_RUN_SCRIPTS if has_scripts and not options.has_script_tool else ""


def _check_clearance(path: str, settings: Settings) -> None:
    """Check that agents get the skill. Raises: SkillNotApproved, SkillRejected."""
    snapshot = AgentSkills.of(path, settings=settings._replace(log_usage=False)).snapshot()
    for held in snapshot.skill_view.held:
        raise SkillNotApproved(held.skill.name, held.decision.rule)
    if snapshot.skill_view.trust_problem:  # a rule that cannot be read may block the skill
        raise SkillNotApproved(Path(path).name, snapshot.skill_view.trust_problem)
    if not len(snapshot.skill_view):
        reasons = [one.finding.message for one in snapshot.instructions.findings]
        raise SkillRejected(path, reasons or ["models do not see it"])


def _read_old_skill(
    skill: EvaluatedSkill, path: str, version: str, settings: Settings
) -> EvaluatedSkill | None:
    """Return the version to compare with; None if there is none.

    Raises: SkillNotApproved if a policy or a revocation holds it, SkillhallError.
    """
    if not version:
        return None
    bundle = read_other_version(path, version)
    gate = open_trust_gate(settings, LOAD_EVERYTHING)
    source = gate.open_sources()(path) if settings.has_policy else ""
    decision = gate.judge_bundle(skill.name, bundle, source)
    if decision is not None and not decision.is_cleared:
        raise SkillNotApproved(f"{skill.name} at {version}", decision.rule)
    return EvaluatedSkill.of_files(skill.name, skill.folder, version, read_files(bundle))


def _read_other_skills(
    skill: EvaluatedSkill, folders: Sequence[str], settings: Settings
) -> tuple[EvaluatedSkill, ...]:
    """Return the skills in the folders, without the evaluated one."""
    if not folders:
        return ()
    view = AgentSkills.of(*folders, settings=settings._replace(log_usage=False)).current_view()
    versions = (read_evaluated_skill(row.name, row.skill.directory) for row in view)
    others = {one.folder: one for one in versions if one.name != skill.name}
    return tuple(one for folder, one in others.items() if folder != skill.folder)
