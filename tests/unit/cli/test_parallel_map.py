"""A map on all cores gives the results of `map`, in order."""

import os

from skillhall._internal.cli.parallel_map import MIN_ITEMS, parallel_map


def double(number: int) -> int:
    return 2 * number


def exit_in_child(number: int) -> int:
    if os.getpid() != MAIN and number == MIN_ITEMS // 2:
        os._exit(1)
    return 2 * number


MAIN = os.getpid()


def test_results_are_in_order_and_counted() -> None:
    seen: list[tuple[int, int]] = []
    items = list(range(MIN_ITEMS))
    results = list(parallel_map(double, items, lambda _, done, total: seen.append((done, total))))
    assert results == [2 * item for item in items]
    assert seen == [(number + 1, MIN_ITEMS) for number in items]


def test_few_items_are_mapped_here_without_progress() -> None:
    seen: list[int] = []
    assert [*parallel_map(double, [1, 2], lambda _, done, __: seen.append(done))] == [2, 4]
    assert seen == []


def test_killed_process_does_not_change_the_result() -> None:
    items = list(range(MIN_ITEMS))
    assert [*parallel_map(exit_in_child, items)] == [2 * item for item in items]
