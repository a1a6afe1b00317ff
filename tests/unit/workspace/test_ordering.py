from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.workspace.ordering import (
    MAX_POSITION_LENGTH,
    position_between,
    positions_after,
    respread_window,
    spread_positions,
)


def test_position_exists_before_after_and_between() -> None:
    middle = position_between("", "")
    assert position_between("", middle) < middle < position_between(middle, "")


def test_appended_positions_stay_short() -> None:
    keys = positions_after("", 3000)
    assert keys == sorted(set(keys))
    assert {len(key) for key in keys} == {8}


def test_positions_exist_beyond_both_extremes() -> None:
    last, first = "z" * 8, "0" * 7 + "1"
    assert position_between(last, "") > last
    assert position_between("", first) < first
    assert position_between("", position_between("", first)) < position_between("", first)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.booleans()), max_size=300))
def test_inserted_positions_stay_in_order(inserts: list[tuple[int, bool]]) -> None:
    keys: list[str] = []
    for index, is_first in inserts:
        at = 0 if is_first else index % (len(keys) + 1)
        low = keys[at - 1] if at else ""
        high = keys[at] if at < len(keys) else ""
        keys.insert(at, position_between(low, high))
    assert all(low < high for low, high in pairwise(keys))


@given(st.integers(1, 200))
def test_spread_positions_are_distinct_and_ordered(number: int) -> None:
    keys = spread_positions("VVVVVVVV", "VVVVVVVW", number)
    assert len(set(keys)) == number
    assert ["VVVVVVVV", *keys, "VVVVVVVW"] == sorted(["VVVVVVVV", *keys, "VVVVVVVW"])


def test_respreading_shortens_only_nearby_positions() -> None:
    rows = [(str(number), position) for number, position in enumerate(positions_after("", 200))]
    low = rows[100][1]
    for number in range(200, 400):
        position = position_between(low, rows[101][1])
        rows.insert(101, (str(number), position))
    first, end, positions = respread_window(rows, 101)
    assert max(map(len, positions)) <= MAX_POSITION_LENGTH // 2
    assert len(positions) == end - first + 1
    assert first > 80
    assert end < len(rows) - 80
    assert rows[first - 1][1] < positions[0]
    assert positions[-1] < rows[end][1]
