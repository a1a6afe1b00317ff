"""The plan of an eval: the runs of all cases, arms and repeats, and their digests.

A run's digest covers everything that its result depends on: the case, the files that the agent
gets, the agent and the limits. It does not cover assertions: a new assertion needs no new run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm, RunKey
from skillhall._internal.skill.bundle import digest_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill
    from skillhall._internal.evals.runs.run_limits import RunLimits
    from skillhall._internal.skill.evals.eval_file import EvalCase

_FORMAT = 1  # of `plan.json` and of digests


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """A case and the input files of its runs."""

    case: EvalCase
    inputs: Mapping[str, tuple[bytes, int]]
    skip_reason: str = ""  # why it cannot be run


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run of a plan."""

    key: RunKey
    digest: str
    case: PlannedCase


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPlan:
    """The runs of one skill. `old_skill` is the version of the third arm."""

    skill: EvaluatedSkill
    old_skill: EvaluatedSkill | None = None
    other_skills: tuple[EvaluatedSkill, ...] = ()  # the agent has them in every arm
    cases: tuple[PlannedCase, ...]
    repeats: int
    agent: Mapping[str, object]  # its identity
    limits: RunLimits
    is_complete: bool = True  # whether it has all cases of the skill
    runs: tuple[PlannedRun, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Compute the runs: repeats, then cases, then arms, so that arms stay balanced."""
        digests = {
            (case.case.id, arm): self._compute_digest(case, arm)
            for case in self.cases
            for arm in self.arms
        }
        runs = tuple(
            PlannedRun(
                key=RunKey(case.case.id, arm, repeat),
                digest=digests[case.case.id, arm],
                case=case,
            )
            for repeat in range(1, self.repeats + 1)
            for case in self.cases
            for arm in self.arms
        )
        object.__setattr__(self, "runs", runs)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of the plan, in order."""
        old = () if self.old_skill is None else (Arm.OLD_SKILL,)
        return (Arm.WITH_SKILL, Arm.WITHOUT_SKILL, *old)

    def get_skills(self, arm: Arm) -> tuple[EvaluatedSkill, ...]:
        """Return the skills that the agent has in an arm."""
        evaluated = {Arm.WITH_SKILL: self.skill, Arm.OLD_SKILL: self.old_skill}.get(arm)
        return (*self.other_skills, *(() if evaluated is None else (evaluated,)))

    @property
    def digest(self) -> str:
        """The digest of the plan. Equal plans continue the same iteration."""
        keys = [[*run.key, run.digest] for run in self.runs]
        return _digest_json([self.skill.name, self.skill.digest, keys])

    def serialize(self) -> dict[str, object]:
        """Return the content of `plan.json`."""
        old = self.old_skill
        return {
            "format": _FORMAT,
            "digest": self.digest,
            "skill_name": self.skill.name,
            "skill_digest": self.skill.digest,
            "old_skill": None if old is None else serialize_skill(old),
            "other_skills": [serialize_skill(one) for one in self.other_skills],
            "agent": dict(self.agent),
            "limits": self.limits.serialize(),
            "repeats": self.repeats,
            "arms": [str(arm) for arm in self.arms],
            "complete": self.is_complete,
            "cases": [_serialize_case(one) for one in self.cases],
        }

    def _compute_digest(self, case: PlannedCase, arm: Arm) -> str:
        skills = sorted([one.name, one.agent_digest] for one in self.get_skills(arm))
        return _digest_json(
            [
                *(_FORMAT, case.case.id, case.case.prompt, digest_files(case.inputs)),
                *(skills, dict(self.agent), self.limits.serialize()),
            ]
        )


def serialize_skill(skill: EvaluatedSkill) -> dict[str, object]:
    """Return all but the files of a skill for `plan.json`."""
    return {
        "name": skill.name,
        "folder": skill.folder,
        "label": skill.label,
        "digest": skill.digest,
        "agent_digest": skill.agent_digest,
    }


def _serialize_case(planned: PlannedCase) -> dict[str, object]:
    case = planned.case
    return {
        "id": case.id,
        "prompt": case.prompt,
        "expected_output": case.expected_output,
        "files": [mention.path for mention in case.files],
    }


def _digest_json(value: object) -> str:
    data = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
