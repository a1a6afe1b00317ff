"""Summary of blind comparisons: preference, and position bias of the judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import RunUsage, add_usages
from skillhall._internal.evals.eval_summary import ArmVerdict, RateEstimate
from skillhall._internal.evals.pair_comparison import Choice, Preference
from skillhall._internal.evals.statistics import (
    bootstrap_interval,
    explain_small_sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.evals.eval_records import Arm
    from skillhall._internal.evals.pair_comparison import PairComparison

_SCORES = {Preference.SKILL: 1.0, Preference.BASELINE: -1.0}
_PLACES = {Choice.FIRST: 1.0, Choice.SECOND: -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceSummary:
    """The comparisons of an arm with the skill. All values are means over cases.

    `preference` ranges from -1 (the baseline is always preferred) to 1 (the skill always is).
    `order_bias` ranges from -1 (the second answer is always chosen) to 1 (the first always is).
    """

    baseline: Arm
    counts: Mapping[Preference, int]
    cases: int
    preference: RateEstimate | None
    order_bias: RateEstimate | None
    verdict: ArmVerdict
    reason: str = ""  # why there is no verdict
    usage: RunUsage = field(default_factory=RunUsage)  # of the judge


def summarize_preferences(
    baseline: Arm, comparisons: Iterable[PairComparison]
) -> PreferenceSummary | None:
    """Return the summary of comparisons with an arm; `None` if there are none."""
    counts: Counter[Preference] = Counter()
    scores: defaultdict[str, list[float]] = defaultdict(list)
    places: defaultdict[str, list[float]] = defaultdict(list)
    usages: list[RunUsage] = []
    for one in comparisons:
        usages.append(one.usage)
        counts[one.preference] += 1
        if one.preference is not Preference.NOT_JUDGED:
            scores[one.key.case_id].append(_SCORES.get(one.preference, 0.0))
            places[one.key.case_id] += [_PLACES.get(choice, 0.0) for choice in one.choices]
    if not counts:
        return None
    preference = _estimate([*scores.values()])
    reason = explain_small_sample([len(one) for one in scores.values()])
    return PreferenceSummary(
        baseline=baseline,
        counts=dict(counts),
        cases=len(scores),
        preference=preference,
        order_bias=_estimate([*places.values()]),
        verdict=ArmVerdict.NOT_ENOUGH_RUNS
        if reason or preference is None
        else ArmVerdict.of_interval(preference.interval),
        reason=reason,
        usage=add_usages(usages),
    )


def _estimate(values: Sequence[Sequence[float]]) -> RateEstimate | None:
    means = [fmean(one) for one in values]
    return RateEstimate(fmean(means), bootstrap_interval(means)) if means else None
