"""The summary of an eval as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.reports.skill_results import (
    ARM_NAMES,
    VERDICT_NAMES,
    describe_judge,
    format_cost,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.evals.eval_summary import (
        ArmDifference,
        ArmSummary,
        AssertionSummary,
        EvalSummary,
        RateEstimate,
        VerdictCounts,
    )
    from skillhall._internal.evals.preference_summary import PreferenceSummary
    from skillhall._internal.evals.statistics import Interval

_MAX_LISTED = 10  # assertions
_MAX_TEXT = 80  # characters of an assertion


def format_summary(summary: EvalSummary) -> Iterator[str]:
    """Yield the lines about one skill."""
    cases = format_count(len(summary.cases), "case")
    yield f"{summary.subject.skill_name}: {cases}, {summary.subject.agent}"
    width = max((len(ARM_NAMES[arm.arm]) for arm in summary.arms), default=0)
    for arm in summary.arms:
        yield f"  {ARM_NAMES[arm.arm]:<{width}}  {_format_arm(arm)}"
    for difference in summary.differences:
        yield f"  {format_difference(difference)}"
    if judge := describe_judge(summary):
        yield f"  {judge}"
    for preference in summary.preferences:
        yield f"  {_format_preference(preference)}"
    yield from _list_assertions("flaky", [one for one in summary.assertions if one.is_flaky])
    useless = [one for one in summary.assertions if one.never_discriminates]
    yield from _list_assertions("the same in all arms", useless)


def format_difference(one: ArmDifference) -> str:
    """Return a difference, its interval and the verdict, or why there is none."""
    label = f"difference from runs {ARM_NAMES[one.baseline]}"
    if one.difference is None or one.interval is None:
        return f"{label}: {one.reason}"
    verdict = one.reason or VERDICT_NAMES[one.verdict]
    points = f"{one.difference * 100:+.1f} points {format_points(one.interval)}"
    return f"{label}: {points}, {format_count(one.cases, 'case')}: {verdict}"


def format_points(interval: Interval) -> str:
    """Return the interval of a difference in percentage points."""
    return f"[{interval.low * 100:+.1f}, {interval.high * 100:+.1f}]"


def format_rate(rate: RateEstimate | None) -> str:
    """Return a rate and its interval in percent."""
    if rate is None:
        return "not judged"
    low, high = rate.interval
    return f"{rate.value:.0%} [{low:.0%}, {high:.0%}]"


def _format_arm(arm: ArmSummary) -> str:
    parts = [f"pass rate {format_rate(arm.pass_rate)}", _format_counts(arm.assertions)]
    if len(arm.pass_at) > 1:
        k = len(arm.pass_at)
        parts.append(f"pass@{k} {arm.pass_at[-1]:.0%}, pass^{k} {arm.pass_hat[-1]:.0%}")
    used = [] if arm.tokens is None else [f"{arm.tokens.mean:.0f} tokens"]
    used += [format_cost(arm.cost_per_run)] if arm.cost_per_run else []
    used += [] if arm.seconds is None else [f"{arm.seconds.mean:.1f} s"]
    if used:
        parts.append(f"{', '.join(used)} per run")
    parts += [
        f"{count} of {arm.runs} runs {status}"
        for status, count in arm.statuses.items()
        if status is not RunStatus.COMPLETED
    ]
    return "; ".join(parts)


def _format_counts(counts: VerdictCounts) -> str:
    not_judged = f", {counts.not_judged} not judged" if counts.not_judged else ""
    return f"{counts.passed} passed, {counts.failed} failed{not_judged}"


def _format_preference(one: PreferenceSummary) -> str:
    counts = ", ".join(f"{count} {preference}" for preference, count in one.counts.items())
    verdict = one.reason or VERDICT_NAMES[one.verdict]
    bias = "" if one.order_bias is None else f"; order bias {one.order_bias.value:+.2f}"
    return f"blind comparison with runs {ARM_NAMES[one.baseline]}: {counts}: {verdict}{bias}"


def _list_assertions(label: str, assertions: Sequence[AssertionSummary]) -> Iterator[str]:
    if not assertions:
        return
    yield f"  {format_count(len(assertions), 'assertion')} {label}:"
    for one in assertions[:_MAX_LISTED]:
        arms = "; ".join(
            f"{ARM_NAMES[arm]}: {_format_counts(counts)}" for arm, counts in one.arms.items()
        )
        text = one.text if len(one.text) <= _MAX_TEXT else f"{one.text[:_MAX_TEXT]}…"
        yield f"    case {one.case_id}: {text!r} ({arms})"
    if len(assertions) > _MAX_LISTED:
        yield f"    … {len(assertions) - _MAX_LISTED} more, see summary.json"
