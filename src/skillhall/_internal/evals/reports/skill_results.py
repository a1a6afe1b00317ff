"""The results of one skill that a report shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.eval_summary import ArmVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.evals.eval_records import GradedRun, RunKey
    from skillhall._internal.evals.eval_summary import ArmDifference, EvalSummary
    from skillhall._internal.evals.gates import GateResult
    from skillhall._internal.evals.preference_summary import PreferenceSummary
    from skillhall._internal.evals.reports.model_overview import ModelOverview
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult

    Transcript = Sequence[Mapping[str, object]]

Sign: TypeAlias = Literal["", "+"]  # "+" for differences
UNKNOWN = "–"  # a number that is not known
ARM_NAMES = {
    Arm.WITH_SKILL: "with the skill",
    Arm.WITHOUT_SKILL: "without the skill",
    Arm.OLD_SKILL: "with the old version",
}
VERDICT_NAMES = {
    ArmVerdict.BETTER: "better",
    ArmVerdict.WORSE: "worse",
    ArmVerdict.UNCLEAR: "no clear difference",
    ArmVerdict.NOT_ENOUGH_RUNS: "not enough runs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillResults:
    """The newest results of one skill: of its test cases, its triggers, or both."""

    skill_name: str
    summary: EvalSummary | None = None
    runs: Iterable[GradedRun] = ()  # can be iterated more than once
    prompts: Mapping[str, str] = field(default_factory=dict)  # of the cases, by id
    triggers: TriggerResult | None = None
    models: Sequence[ModelOverview] = ()  # the results of each model for the same files
    gates: Sequence[GateResult] = ()
    is_current: bool | None = None  # whether the skill has not changed since; None if not known
    read_transcript: Callable[[RunKey], Transcript] = lambda _: ()

    @property
    def is_empty(self) -> bool:
        """Whether there are no results."""
        return self.summary is None and self.triggers is None


def describe_difference(difference: ArmDifference) -> str:
    """Return the difference of two arms in one phrase."""
    verdict = VERDICT_NAMES[difference.verdict]
    if difference.difference is None or difference.interval is None:
        return verdict
    low, high = difference.interval
    return f"{verdict}: {difference.difference:+.2f} ({low:+.2f} to {high:+.2f})"


def describe_preference(summary: PreferenceSummary) -> str:
    """Return the result of blind comparisons in one phrase."""
    parts = []
    for label, rate in (("preference", summary.preference), ("order bias", summary.order_bias)):
        if rate is not None:
            low, high = rate.interval
            parts.append(f"{label} {rate.value:+.2f} ({low:+.2f} to {high:+.2f})")
    label = f"blind comparison with runs {ARM_NAMES[summary.baseline]}"
    return f"{label}: {', '.join([VERDICT_NAMES[summary.verdict], *parts])}"


def describe_judge(summary: EvalSummary) -> str:
    """Return the model that judged and what it used; "" without one."""
    usage = summary.judge_usage
    if not usage.requests:
        return ""
    cost = "unknown cost" if usage.cost is None else format_cost(usage.cost)
    requests = "1 request" if usage.requests == 1 else f"{usage.requests} requests"
    name = summary.subject.judge or "a model"
    return f"judged by {name} with {requests}, {usage.total_tokens} tokens, {cost}"


def format_number(value: float | None, sign: Sign = "") -> str:
    """Return a rounded number; a dash if it is not known."""
    if value is None:
        return UNKNOWN
    # Numbers below 10 have two digits more.
    return f"{value:{sign},.0f}" if abs(value) >= 10 else f"{value:{sign}.2f}"  # noqa: PLR2004


def format_cost(cost: float | None, sign: Sign = "") -> str:
    """Return an amount of US dollars; a dash if the price is not known."""
    if cost is None:
        return UNKNOWN
    shown = "-" if cost < 0 else sign
    return f"{shown}${abs(cost):.4f}"
