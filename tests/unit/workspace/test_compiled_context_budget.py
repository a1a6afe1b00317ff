"""Token counts compared with budgets."""

import pytest

from skillhall._internal.workspace import Session, SessionBudgets, Zone, ZoneSize
from skillhall._internal.workspace.compiled_context import Spending, compute_spending


@pytest.mark.parametrize(
    ("tokens", "budget", "level"),
    [
        (10**9, None, "fine"),
        (0, 0, "fine"),
        (1, 0, "danger"),
        (799, 1000, "fine"),
        (800, 1000, "warning"),
        (949, 1000, "warning"),
        (950, 1000, "danger"),
        (2000, 1000, "danger"),
    ],
)
def test_budget_level_changes_at_80_and_95_percent(
    tokens: int, budget: int | None, level: str
) -> None:
    assert Spending(tokens, budget).level == level


def test_session_spending_is_the_sum_of_its_zones() -> None:
    budgets = SessionBudgets(stable=10, total=100)
    session = Session("s1", "x", budgets, 1, 1, "", "")
    spent = compute_spending(
        session, {Zone.STABLE: ZoneSize(2, 7, 30), Zone.WORKING: ZoneSize(1, 5, 9)}
    )
    assert spent[Zone.STABLE] == (7, 10)
    assert spent[Zone.PERMANENT] == (0, None)
    assert spent[None] == (12, 100)
