"""Worker pools: errors at their limits, and work whose request has given up."""

import asyncio
import threading

import pytest

from skillhall._internal.http import thread_pool
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.thread_pool import Work, WorkerPool, WorkerPools

DEADLINE = 120  # seconds


def test_call_that_takes_too_long_is_answered_and_keeps_its_thread() -> None:
    started, release = threading.Event(), threading.Event()
    pool = WorkerPool(1, 0, name="fetch", timeout=0.01)

    def hold_thread() -> None:
        started.set()
        release.wait(DEADLINE)

    async def fail() -> HttpError:
        with pytest.raises(HttpError) as caught:
            await pool.run(hold_thread)
        return caught.value

    async def main() -> tuple[HttpError, HttpError]:
        timed_out = await fail()
        while not started.is_set():  # on a busy machine, the thread may start too late
            timed_out = await fail()
        return timed_out, await fail()

    timed_out, refused = asyncio.run(main())
    assert timed_out.code == "upstream_timeout"
    assert "waiting 0.01 seconds for other hosts" in str(timed_out)
    assert refused.code == "overloaded"
    assert dict(refused.headers)[b"retry-after"]
    assert pool.status.busy == 1
    release.set()


def test_call_that_waits_too_long_for_a_thread_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_pool, "_MAX_WAIT", 0.01)
    release, pool = threading.Event(), WorkerPool(1, 4)

    async def main() -> int:
        first = asyncio.ensure_future(pool.run(release.wait, DEADLINE))
        await asyncio.sleep(0)
        with pytest.raises(HttpError, match="the server is busy"):
            await pool.run(lambda: 1)
        release.set()
        assert await first
        return await pool.run(lambda: 2)

    assert asyncio.run(main()) == 2
    assert pool.status.rejected == 1


def test_calls_of_one_client_are_limited() -> None:
    release, pool = threading.Event(), WorkerPool(4, 0, name="fetch", max_per_client=1)

    async def main() -> None:
        first = asyncio.ensure_future(pool.run_for("ada", lambda: release.wait(DEADLINE)))
        await asyncio.sleep(0)
        with pytest.raises(HttpError, match="1 of your requests"):
            await pool.run_for("ada", lambda: True)
        assert await pool.run_for("bob", lambda: True)
        release.set()
        assert await first

    asyncio.run(main())


def test_shared_skills_are_changed_by_the_threads_of_the_database() -> None:
    for in_database, work in ((True, Work.DATABASE), (False, Work.DISK)):
        pools = WorkerPools(store_in_database=in_database)
        assert pools[Work.STORE] is pools[work]
        assert [status.name for status in pools.status()] == ["disk", "database", "fetch"]
