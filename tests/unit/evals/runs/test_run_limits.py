"""The spending of all runs: partial usage, totals and limits."""

import pytest

from skillhall._internal.evals.eval_records import Arm, RunKey, RunUsage
from skillhall._internal.evals.runs.run_limits import (
    ModelPrice,
    RunSpending,
    SpendingLimitReached,
)

FIRST, SECOND = (RunKey("1", arm, 1) for arm in (Arm.WITH_SKILL, Arm.WITHOUT_SKILL))


def use(tokens: int, cost: float | None = 0.0) -> RunUsage:
    return RunUsage(input_tokens=tokens, cost=cost)


def test_usage_of_a_running_run_counts_once() -> None:
    spending = RunSpending()
    spending.update(FIRST, use(10, 0.1))
    spending.update(FIRST, use(30, 0.3))
    spending.update(SECOND, use(5, 0.05))
    spending.finish(FIRST)

    assert spending.tokens == 35
    assert spending.cost == pytest.approx(0.35)


def test_limits_hold_while_runs_are_in_progress() -> None:
    spending = RunSpending(max_tokens=40, max_cost=1)
    spending.update(FIRST, use(30))

    with pytest.raises(SpendingLimitReached, match="the limit of 40 tokens is reached"):
        spending.update(SECOND, use(10))
    with pytest.raises(SpendingLimitReached, match="the limit of"):
        RunSpending(max_cost=1).update(FIRST, use(0, 1.5))


def test_unknown_cost_of_one_run_makes_the_total_unknown() -> None:
    spending = RunSpending()
    spending.update(FIRST, use(1, 0.1))
    spending.update(SECOND, use(1, None))

    assert spending.cost is None


def test_price_is_per_million_tokens() -> None:
    assert ModelPrice(3, 15).cost_of(1_000_000, 100_000) == pytest.approx(4.5)
