"""Intervals and estimators, compared with published values."""

import pytest

from skillhall._internal.evals.statistics import (
    _student_quantile,
    bootstrap_interval,
    estimate_pass_at_k,
    estimate_pass_hat_k,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_equals_the_values_of_newcombe_1998(
    passed: int, total: int, low: float, high: float
) -> None:
    interval = wilson_interval(passed, total)

    assert interval == pytest.approx((low, high), abs=0.00005)


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [(0, 5, 0.0, 0.4345), (5, 5, 0.5655, 1.0), (0, 0, 0.0, 1.0), (2.5, 5, 0.1704, 0.8296)],
)
def test_wilson_interval_stays_within_zero_and_one(
    passed: float, total: int, low: float, high: float
) -> None:
    interval = wilson_interval(passed, total)

    assert interval == pytest.approx((low, high), abs=0.0001)
    assert (interval.low == 0, interval.high == 1) == (passed == 0, passed == total)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (199, 1.9720)],
)
def test_student_quantile_equals_the_tables(freedom: int, quantile: float) -> None:
    assert _student_quantile(0.975, freedom) == pytest.approx(quantile, abs=0.0001)


def test_bootstrap_interval_of_many_values_is_near_the_normal_one() -> None:
    values = [0.0, 1.0] * 100

    interval = bootstrap_interval(values)

    assert interval == pytest.approx((0.5 - 0.0693, 0.5 + 0.0693), abs=0.006)


def test_bootstrap_interval_of_few_values_is_wider_than_the_percentiles() -> None:
    # The plain percentiles of these resamples are 0.0 and 0.8.
    low, high = bootstrap_interval([0, 0, 0, 1, 1])

    assert low <= 0.0
    assert high == 1.0


def test_bootstrap_interval_does_not_depend_on_the_order() -> None:
    values = [0.1, -0.4, 0.9, 0.3, 0.2]

    assert bootstrap_interval(values) == bootstrap_interval(values[::-1])


@pytest.mark.parametrize(
    ("value", "count", "low", "high"),
    [
        (1.0, 5, 0.5655, 1.0),
        (0.6, 5, 0.3393, 0.7738),
        (0.0, 5, -0.4345, 0.4345),
        (0.0, 1, -0.7935, 0.7935),
        (-1.0, 5, -1.0, -0.5655),
    ],
)
def test_interval_of_equal_values_depends_on_their_number(
    value: float, count: int, low: float, high: float
) -> None:
    interval = bootstrap_interval([value] * count)

    assert interval == pytest.approx((low, high), abs=0.0001)


@pytest.mark.parametrize(
    ("passed", "total", "k", "at_k", "hat_k"),
    [(0, 3, 1, 0.0, 0.0), (1, 3, 1, 1 / 3, 1 / 3), (1, 3, 3, 1.0, 0.0), (2, 4, 2, 5 / 6, 1 / 6)],
)
def test_pass_at_k_and_pass_hat_k_are_unbiased(
    passed: int, total: int, k: int, at_k: float, hat_k: float
) -> None:
    assert estimate_pass_at_k(passed, total, k) == pytest.approx(at_k)
    assert estimate_pass_hat_k(passed, total, k) == pytest.approx(hat_k)


def test_values_that_differ_by_rounding_are_equal() -> None:
    interval = bootstrap_interval([2 / 3 - 1 / 3, 1 - 2 / 3] * 5)

    assert interval == pytest.approx((0.2408, 0.5184), abs=0.001)
