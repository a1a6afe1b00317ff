"""Refreshing sources: TTL, concurrent refreshes and failures."""

import gc
import os
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillhall._internal.prompt_server.checkout import CheckoutStore
from skillhall._internal.prompt_server.prompt_model import Stale
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.refreshing_source import RefreshingSource, format_utc
from skillhall._internal.sources.repo_layout import FileTree
from skillhall.errors import SkillhallError, SourceUnavailable
from tests.support.prompt_sources import ManualClock

DEADLINE = 120  # seconds


class FakeSource:
    """Counts fetches; can be made to fail or to block."""

    def __init__(self) -> None:
        self.fetches = 0
        self.fails = False
        self.stale = ""
        self.commit = "1"
        self.started = threading.Semaphore(0)
        self.release: threading.Event | None = None

    def fetch(self, previous: PromptSnapshot | None) -> PromptSnapshot:
        self.fetches += 1
        commit = self.commit
        self.started.release()
        if self.release is not None:
            assert self.release.wait(DEADLINE)
        if self.fails:
            raise SourceUnavailable("host", "it is away")
        if previous is not None and previous.commit == commit:
            return previous
        stale = Stale(self.stale, format_utc(60.0)) if self.stale else None
        return PromptSnapshot("s", commit=commit).with_stale(stale)


def test_source_is_refreshed_after_its_ttl() -> None:
    time, source = ManualClock(), FakeSource()
    refreshing = RefreshingSource(100, time.clock)
    first = refreshing.snapshot(source.fetch)
    time.seconds += 99
    assert refreshing.snapshot(source.fetch) is first
    assert source.fetches == 1
    time.seconds, source.commit = time.seconds + 1, "2"
    assert refreshing.snapshot(source.fetch).commit == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_only_later_fetches_have_low_priority() -> None:
    nice: list[int] = []

    def fetch(previous: PromptSnapshot | None) -> PromptSnapshot:
        nice.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return PromptSnapshot("s", commit=str(len(nice)))

    refreshing = RefreshingSource(0, ManualClock().clock)
    for _ in range(2):
        refreshing.snapshot(fetch)
    assert nice[0] == os.getpriority(os.PRIO_PROCESS, 0)
    assert nice[1] > nice[0]


def test_ttl_of_zero_refreshes_every_time() -> None:
    source = FakeSource()
    refreshing = RefreshingSource(0, ManualClock().clock)
    assert [refreshing.snapshot(source.fetch).commit for _ in range(3)] == ["1"] * 3
    assert source.fetches == 3


def test_failed_refresh_returns_the_stale_snapshot() -> None:
    time, source = ManualClock(), FakeSource()
    refreshing = RefreshingSource(100, time.clock)
    snapshot = refreshing.snapshot(source.fetch)
    time.seconds, source.fails = time.seconds + 100, True
    stale = refreshing.snapshot(source.fetch)
    assert stale.with_stale(None) is snapshot
    assert stale.stale == Stale("host: it is away", "2023-11-14T22:30:00Z")
    source.fails = False
    assert refreshing.snapshot(source.fetch).stale is not None  # retried after 30 seconds
    time.seconds += 30
    assert refreshing.snapshot(source.fetch).stale is None


def test_stale_contents_are_marked_and_refreshed_soon() -> None:
    time, source = ManualClock(), FakeSource()
    source.stale = "the host is away"
    refreshing = RefreshingSource(100, time.clock)
    stale = refreshing.snapshot(source.fetch).stale
    assert stale == Stale("the host is away", "1970-01-01T00:01:00Z")
    time.seconds += 30
    refreshing.snapshot(source.fetch)
    assert source.fetches == 2


@pytest.mark.parametrize(("delays_retries", "fetches"), [(True, 1), (False, 3)])
def test_failed_first_fetch_is_retried_at_once_or_delayed(
    delays_retries: bool, fetches: int
) -> None:
    time, source = ManualClock(), FakeSource()
    source.fails = True
    refreshing = RefreshingSource(100, time.clock, delay_retries=delays_retries)
    for _ in range(3):
        with pytest.raises(SkillhallError, match="host: it is away"):
            refreshing.snapshot(source.fetch)
    assert source.fetches == fetches
    time.seconds, source.fails = time.seconds + 30, False
    assert refreshing.snapshot(source.fetch).commit == "1"


def test_concurrent_first_requests_share_one_fetch() -> None:
    source, release = FakeSource(), threading.Event()
    source.release = release
    refreshing = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(refreshing.snapshot, source.fetch) for _ in range(8)]
        assert source.started.acquire(timeout=DEADLINE)
        release.set()
        snapshot_ids = {id(item.result(DEADLINE)) for item in futures}
    assert len(snapshot_ids) == 1
    assert source.fetches == 1


def test_requests_during_a_refresh_get_the_cached_snapshot() -> None:
    time, source, release = ManualClock(), FakeSource(), threading.Event()
    refreshing = RefreshingSource(100, time.clock)
    refreshing.snapshot(source.fetch)
    assert source.started.acquire(timeout=DEADLINE)
    time.seconds, source.commit, source.release = time.seconds + 100, "2", release
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(refreshing.snapshot, source.fetch)
        assert source.started.acquire(timeout=DEADLINE)
        assert [refreshing.snapshot(source.fetch).commit for _ in range(3)] == ["1"] * 3
        release.set()
        assert future.result(DEADLINE).commit == "2"
    assert source.fetches == 2


def test_refresh_does_not_use_a_fetch_that_started_earlier() -> None:
    source, release = FakeSource(), threading.Event()
    source.release = release
    refreshing = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(5) as pool:
        early = pool.submit(refreshing.snapshot, source.fetch)
        assert source.started.acquire(timeout=DEADLINE)
        source.commit = "2"
        late = [pool.submit(refreshing.refresh, source.fetch) for _ in range(4)]
        release.set()
        assert early.result(DEADLINE).commit == "1"
        assert {item.result(DEADLINE).commit for item in late} == {"2"}
    assert 2 <= source.fetches <= 5


def test_caller_does_not_wait_for_a_source_that_hangs() -> None:
    time, source, release = ManualClock(), FakeSource(), threading.Event()
    source.release = release
    refreshing = RefreshingSource(100, time.clock)
    for seconds in (0.01, DEADLINE):  # the second caller knows that it is slow
        with pytest.raises(SkillhallError, match=r"no response within"):
            refreshing.snapshot(source.fetch, seconds)
    release.set()
    assert refreshing.refresh(source.fetch).commit == "1"
    time.seconds, source.commit, source.release = time.seconds + 100, "2", threading.Event()
    assert refreshing.snapshot(source.fetch, 0.01).commit == "1"
    assert source.fetches <= 3  # callers never start a second one
    source.release.set()
    assert refreshing.refresh(source.fetch).commit == "2"


def test_replaced_snapshot_is_not_referenced() -> None:
    source, refreshing = FakeSource(), RefreshingSource(0, ManualClock().clock)
    first = weakref.ref(refreshing.snapshot(source.fetch, DEADLINE))
    source.commit = "2"
    refreshing.refresh(source.fetch)
    for thread in threading.enumerate():
        if thread.name == "skillhall-refresh-source":
            thread.join(DEADLINE)
    gc.collect()
    assert first() is None


def test_expire_during_a_fetch_is_not_lost() -> None:
    source, release = FakeSource(), threading.Event()
    source.release = release
    refreshing = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(refreshing.snapshot, source.fetch)
        assert source.started.acquire(timeout=DEADLINE)
        source.commit = "2"
        refreshing.expire()
        release.set()
        assert future.result(DEADLINE).commit == "1"
    assert refreshing.seconds_until_due == 0
    assert refreshing.snapshot(source.fetch).commit == "2"


def test_fetch_works_after_an_unexpected_error() -> None:
    def broken(_previous: PromptSnapshot | None) -> PromptSnapshot:
        raise ZeroDivisionError

    refreshing, source = RefreshingSource(100, ManualClock().clock), FakeSource()
    with pytest.raises(ZeroDivisionError):
        refreshing.snapshot(broken)
    assert refreshing.snapshot(source.fetch).commit == "1"


def test_deleted_checkout_is_fetched_again(tmp_path: Path) -> None:
    checkouts = CheckoutStore(str(tmp_path))
    refreshing = RefreshingSource(100, ManualClock().clock)

    def fetch(previous: PromptSnapshot | None) -> PromptSnapshot:
        checkout = checkouts.put(FileTree({"a.md": b""}))
        return previous or PromptSnapshot("s", checkout)

    refreshing.snapshot(fetch)
    checkouts.close()
    assert refreshing.cached_snapshot is None
    assert refreshing.snapshot(fetch).is_readable
