"""Intervals and estimators for results of evals.

All functions are pure: the same input gives the same result. All intervals have the level
`CONFIDENCE`.
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
RESAMPLES = 10_000
MIN_CASES = 5  # with fewer cases or repeats, there are counts, but no verdict
MIN_REPEATS = 3
_EQUAL = 1e-9  # differences of rates have rounding errors
_SEED = 0  # fixed, so that grading the same runs again gives the same interval
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def wilson_interval(passed: float, total: int) -> Interval:
    """Return the Wilson interval of `passed / total`; 0 to 1 if `total` is 0.

    `total` is the number of independent trials. If each of them has several repeats, `passed` is
    the sum of their rates, so it may be a fraction.
    """
    if total == 0:
        return Interval(0.0, 1.0)
    rate = passed / total
    center = rate + _Z**2 / (2 * total)
    margin = _Z * math.sqrt(rate * (1 - rate) / total + _Z**2 / (4 * total**2))
    scale = 1 + _Z**2 / total
    # The ends that are 0 or 1 have rounding errors.
    low = (center - margin) / scale if passed > 0 else 0.0
    high = (center + margin) / scale if passed < total else 1.0
    return Interval(low, high)


def bootstrap_interval(differences: Sequence[float]) -> Interval:
    """Return the bootstrap interval of the mean of differences from -1 to 1.

    There must be at least one difference. Percentiles of the means of resamples are too close
    together for few values, so the percentiles are moved outwards to match a t interval (Hesterberg
    2015, "expanded percentile interval").

    Equal values have no spread to resample. The ends of their interval assume that a share of all
    cases has an extreme difference instead: 0 and 1 for positive values, -1 and 0 for negative
    values, -1 and 1 for zeros. The share is the upper end of the Wilson interval for 0 of as many
    cases.
    """
    count = len(differences)
    low, high = min(differences), max(differences)
    if high - low < _EQUAL:
        unseen = wilson_interval(0, count).high
        lowest = 0.0 if low > _EQUAL else -1.0
        highest = 0.0 if high < -_EQUAL else 1.0
        return Interval(low - unseen * (low - lowest), high + unseen * (highest - high))
    generator = random.Random(_SEED)  # noqa: S311 - resampling, not a secret
    ordered = sorted(differences)  # the order of the cases does not matter
    means = sorted(fmean(generator.choices(ordered, k=count)) for _ in range(RESAMPLES))
    quantile = _student_quantile((1 + CONFIDENCE) / 2, count - 1)
    tail = NormalDist().cdf(-quantile * math.sqrt(count / (count - 1)))
    index = int(tail * RESAMPLES)
    return Interval(means[index], means[-1 - index])


def estimate_pass_at_k(passed: int, total: int, k: int) -> float:
    """Return the unbiased estimate that at least one of `k` repeats passes (pass@k)."""
    return 1 - math.comb(total - passed, k) / math.comb(total, k)


def estimate_pass_hat_k(passed: int, total: int, k: int) -> float:
    """Return the unbiased estimate that all of `k` repeats pass (pass^k)."""
    return math.comb(passed, k) / math.comb(total, k)


def explain_small_sample(repeats: Sequence[int]) -> str:
    """Return why there are too few cases or repeats; "" if there are enough.

    `repeats` has the number of judged repeats of each case.
    """
    if len(repeats) < MIN_CASES:
        return f"not enough runs: {len(repeats)} of at least {MIN_CASES} cases have results"
    enough = sum(number >= MIN_REPEATS for number in repeats)
    if enough < MIN_CASES:
        return f"not enough runs: {enough} of at least {MIN_CASES} cases have {MIN_REPEATS} repeats"
    return ""


def _student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution, for a probability above 0.5."""
    low, high = 0.0, 1e3
    for _ in range(60):  # halves the range to less than the precision of a float
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, freedom) < probability else (low, middle)
    return low


def _student_cdf(value: float, freedom: int) -> float:
    # The finite series for whole degrees of freedom: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    angle = math.atan(value / math.sqrt(freedom))
    cosine = math.cos(angle)
    is_odd = freedom % 2 == 1
    term = 1.0 if not is_odd else cosine if freedom > 1 else 0.0
    total = term
    for step in range(3 if is_odd else 2, freedom - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    total *= math.sin(angle)
    return 0.5 + (angle + total) / math.pi if is_odd else 0.5 + total / 2
