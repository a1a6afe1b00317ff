import gc
import math
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from skillhall._internal import background
from skillhall._internal.background import (
    BoundedPool,
    OwnerLimitReached,
    PoolFull,
    limit_collector_pauses,
    run_low_priority,
)

DEADLINE = 120  # seconds


def test_low_priority_work_returns_its_result() -> None:
    assert run_low_priority(lambda: 7) == 7


def test_low_priority_work_raises_its_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run_low_priority(lambda: 1 // 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux threads have a priority")
def test_only_the_worker_thread_has_a_lower_priority() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    lowest = 19
    assert run_low_priority(priority) > before or before == lowest
    assert priority() == before


def test_pool_runs_as_much_work_as_it_has_threads() -> None:
    pool, meeting = BoundedPool("test", 3), threading.Barrier(3)
    futures = [pool.submit(lambda: meeting.wait(DEADLINE)) for _ in range(3)]
    assert sorted(future.result(DEADLINE) for future in futures) == [0, 1, 2]
    assert pool.submit(threading.get_ident).result(DEADLINE) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(DEADLINE)
    assert pool.status == ("test", 3, 0, 0, 0)


def test_full_pool_refuses_work_until_a_thread_is_free() -> None:
    pool, release = BoundedPool("test", 2, 1), threading.Event()
    started = threading.Semaphore(0)

    def work() -> None:
        started.release()
        assert release.wait(DEADLINE)

    futures = [pool.submit(work) for _ in range(2)]
    for _ in futures:
        assert started.acquire(timeout=DEADLINE)
    waiting = pool.submit(work)
    with pytest.raises(PoolFull):
        pool.submit(work)
    assert pool.status == ("test", 2, 2, 1, 1)
    assert pool.give_up(waiting)
    assert not pool.give_up(futures[0])  # it keeps its thread
    assert pool.status == ("test", 2, 2, 0, 2)
    last = pool.submit(work)
    release.set()
    for future in (*futures, last):
        future.result(DEADLINE)
    assert pool.status.busy == 0


def test_one_owner_cannot_occupy_all_threads_of_a_pool() -> None:
    pool, release = BoundedPool("test", 3, 2, max_per_owner=2), threading.Event()
    futures = [pool.submit(lambda: release.wait(DEADLINE), "ada") for _ in range(3)]
    with pytest.raises(OwnerLimitReached):
        pool.submit(lambda: True, "ada")
    assert pool.submit(lambda: True, "bob").result(DEADLINE)
    assert not futures[2].running()  # it waits, though a thread is free
    release.set()
    assert all(future.result(DEADLINE) for future in futures)
    assert pool.submit(lambda: True, "ada").result(DEADLINE)


@pytest.fixture
def _unchanged_collector() -> Iterator[None]:
    callbacks = [*gc.callbacks]
    gc.unfreeze()
    yield
    gc.callbacks[:] = callbacks
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as after the collection of the tests


@pytest.mark.usefixtures("_unchanged_collector")
def test_present_objects_are_exempt_from_collection() -> None:
    limit_collector_pauses()
    assert gc.get_freeze_count() > len(gc.get_objects())


@pytest.mark.usefixtures("_unchanged_collector")
def test_objects_are_exempt_after_a_collection_that_took_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "_MAX_PAUSE", math.inf)
    limit_collector_pauses()
    before = gc.get_freeze_count()
    later: list[list[int]] = [[] for _ in range(100_000)]
    gc.collect()
    assert gc.get_freeze_count() <= before
    monkeypatch.setattr(background, "_MAX_PAUSE", -1.0)
    gc.collect()
    # Some objects of earlier tests, which were exempt, were deleted in between.
    assert gc.get_freeze_count() >= before + len(later) // 2


@pytest.mark.usefixtures("_unchanged_collector")
def test_a_second_server_adds_no_callback() -> None:
    limit_collector_pauses()
    callbacks = [*gc.callbacks]
    limit_collector_pauses()
    assert gc.callbacks == callbacks
