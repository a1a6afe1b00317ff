"""A map on all cores gives the results of `map`, in order."""

import os
import signal
import subprocess
import sys

import pytest

from skillhall._internal.cli.parallel_map import MIN_ITEMS, map_batches, parallel_map


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


def test_errors_are_raised() -> None:
    def invert(number: int) -> float:
        return 1 / (number - MIN_ITEMS // 2)

    with pytest.raises(ZeroDivisionError):
        [*parallel_map(invert, range(MIN_ITEMS))]


def test_results_may_be_larger_than_a_pipe() -> None:
    results = parallel_map(lambda number: bytes(100_000 * (number % 3)), range(MIN_ITEMS))
    assert [len(result) for result in results] == [100_000 * (n % 3) for n in range(MIN_ITEMS)]


def test_batches_have_all_items_in_order() -> None:
    items = list(range(2 * MIN_ITEMS))
    assert [*map_batches(list[int], items)] == items


STOPPED_EARLY = """
import os
from skillhall._internal.cli.parallel_map import MIN_ITEMS, parallel_map

results = parallel_map(lambda number: 2 * number, list(range(MIN_ITEMS)))
assert next(results) == 0
results.close()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no processes are left")
"""


def test_other_results_are_not_needed_to_stop() -> None:
    # In a process of its own, because that of the tests has other children.
    result = subprocess.run(
        [sys.executable, "-c", STOPPED_EARLY], capture_output=True, text=True, check=True
    )
    assert result.stdout == "no processes are left\n"


SCRIPT = """
import os, sys, time
from skillhall._internal.cli.parallel_map import parallel_map

def work(number):
    sys.stdout.write("x")
    sys.stdout.flush()
    time.sleep(0.001)

[*parallel_map(work, range(10**6))]
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are not forked")
def test_processes_end_when_the_main_process_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # a process has begun
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)  # returns when all processes have closed it
