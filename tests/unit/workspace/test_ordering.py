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


def test_there_is_a_position_at_both_ends_and_between() -> None:
    middle = position_between("", "")
    assert position_between("", middle) < middle < position_between(middle, "")


def test_positions_at_the_end_stay_short() -> None:
    keys = positions_after("", 3000)
    assert keys == sorted(set(keys))
    assert {len(key) for key in keys} == {8}


def test_a_zone_has_no_end() -> None:
    last, first = "z" * 8, "0" * 7 + "1"
    assert position_between(last, "") > last
    assert position_between("", first) < first
    assert position_between("", position_between("", first)) < position_between("", first)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.booleans()), max_size=300))
def test_whatever_is_put_between_any_two_stays_in_order(places: list[tuple[int, bool]]) -> None:
    keys: list[str] = []
    for place, is_first in places:
        at = 0 if is_first else place % (len(keys) + 1)
        low = keys[at - 1] if at else ""
        high = keys[at] if at < len(keys) else ""
        keys.insert(at, position_between(low, high))
    assert all(low < high for low, high in pairwise(keys))


@given(st.integers(1, 200))
def test_positions_are_spread_between_two(number: int) -> None:
    keys = spread_positions("VVVVVVVV", "VVVVVVVW", number)
    assert len(set(keys)) == number
    assert ["VVVVVVVV", *keys, "VVVVVVVW"] == sorted(["VVVVVVVV", *keys, "VVVVVVVW"])


def test_a_crowd_gets_short_positions_without_touching_those_far_away() -> None:
    keys = [(str(number), key) for number, key in enumerate(positions_after("", 200))]
    low = keys[100][1]
    for number in range(200, 400):
        key = position_between(low, keys[101][1])
        keys.insert(101, (str(number), key))
    first, end, found = respread_window(keys, 101)
    assert max(map(len, found)) <= MAX_POSITION_LENGTH // 2
    assert len(found) == end - first + 1
    assert first > 80
    assert end < len(keys) - 80
    assert keys[first - 1][1] < found[0]
    assert found[-1] < keys[end][1]
