"""Blind comparisons of runs with and without the skill, and their files.

A judge may prefer the first or the second answer regardless of its content. So a preference counts
only if it is the same in both orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import Arm, RunUsage
from skillhall._internal.evals.eval_workspace import build_slug
from skillhall._internal.evals.run_files import parse_usage, read_field, serialize_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.eval_records import RunKey
    from skillhall._internal.evals.eval_workspace import EvalIteration


class Choice(StrEnum):
    """The answer that a judge chose, by its position in the request."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"
    NONE = "none"  # the reply cannot be used


class Preference(StrEnum):
    """The result of a comparison in both orders."""

    SKILL = "skill"
    BASELINE = "baseline"
    TIE = "tie"
    INCONSISTENT = "inconsistent"  # the choice depends on the order
    NOT_JUDGED = "not_judged"


_AGREEMENTS = {
    (Choice.FIRST, Choice.SECOND): Preference.SKILL,
    (Choice.SECOND, Choice.FIRST): Preference.BASELINE,
    (Choice.TIE, Choice.TIE): Preference.TIE,
}


class OrderedChoice(NamedTuple):
    """The choice of a judge in one order, and why."""

    choice: Choice
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """The choices about one pair: with the answer of the skill first, and second."""

    key: RunKey  # of the run without the skill, or with its old version
    digest: str  # of both runs, the case and the judge
    skill_first: OrderedChoice
    skill_second: OrderedChoice
    usage: RunUsage

    @property
    def choices(self) -> tuple[Choice, Choice]:
        """The choices in both orders."""
        return self.skill_first.choice, self.skill_second.choice

    @property
    def preference(self) -> Preference:
        """The preference, if both orders agree."""
        if Choice.NONE in self.choices:
            return Preference.NOT_JUDGED
        return _AGREEMENTS.get(self.choices, Preference.INCONSISTENT)


def write_comparison(iteration: EvalIteration, comparison: PairComparison) -> None:
    """Write the file of a comparison. Raises: OSError."""
    value = {
        "digest": comparison.digest,
        "preference": str(comparison.preference),
        "skill_first": comparison.skill_first._asdict(),
        "skill_second": comparison.skill_second._asdict(),
        "usage": serialize_usage(comparison.usage),
    }
    iteration.write_json(_file_path(comparison.key), value)


def read_comparison(iteration: EvalIteration, key: RunKey) -> PairComparison | None:
    """Return the stored comparison of a run and the one with the skill."""
    value = iteration.read_json(_file_path(key))
    if not isinstance(value, dict):
        return None
    try:
        return PairComparison(
            key=key,
            digest=read_field(value, "digest", str),
            skill_first=_parse_choice(read_field(value, "skill_first", dict)),
            skill_second=_parse_choice(read_field(value, "skill_second", dict)),
            usage=parse_usage(read_field(value, "usage", dict)),
        )
    except ValueError:
        return None


def _file_path(key: RunKey) -> str:
    kind = "old-" if key.arm is Arm.OLD_SKILL else ""
    return f"eval-{build_slug(key.case_id)}/{kind}comparison-{key.repeat}.json"


def _parse_choice(value: Mapping[str, object]) -> OrderedChoice:
    return OrderedChoice(Choice(read_field(value, "choice", str)), read_field(value, "reason", str))
