"""Feeds: when a source is looked at again, by whom, and what happens if that fails."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillhall._internal.prompts.checkout import CheckoutStore
from skillhall._internal.prompts.prompt_model import Stale
from skillhall._internal.prompts.prompt_snapshot import PromptContents
from skillhall._internal.prompts.refreshing_source import FetchedContents, RefreshingSource
from skillhall._internal.sources.repo_layout import FileTree
from skillhall.errors import SkillhallError, SourceUnavailable
from tests.support.prompt_sources import ManualClock

DEADLINE = 120  # seconds


class Source:
    """A source that can be counted on: each look is counted, and fails or waits if told so."""

    def __init__(self) -> None:
        self.looks = 0
        self.fails = False
        self.stale = ""
        self.commit = "1"
        self.begun = threading.Semaphore(0)
        self.hold: threading.Event | None = None

    def look(self, kept: PromptContents | None) -> FetchedContents:
        self.looks += 1
        commit = self.commit
        self.begun.release()
        if self.hold is not None:
            assert self.hold.wait(DEADLINE)
        if self.fails:
            raise SourceUnavailable("host", "it is away")
        if kept is not None and kept.commit == commit:
            return FetchedContents(kept)
        return FetchedContents(PromptContents("s", commit=commit), self.stale, 60.0)


def test_a_source_is_looked_at_again_when_its_time_is_over() -> None:
    time, source = ManualClock(), Source()
    feed = RefreshingSource(100, time.clock)
    first = feed.snapshot(source.look)
    time.seconds += 99
    assert feed.snapshot(source.look) is first
    assert source.looks == 1
    time.seconds, source.commit = time.seconds + 1, "2"
    assert feed.snapshot(source.look).commit == "2"


def test_no_time_to_live_means_to_look_every_time() -> None:
    source = Source()
    feed = RefreshingSource(0, ManualClock().clock)
    assert [feed.snapshot(source.look).commit for _ in range(3)] == ["1"] * 3
    assert source.looks == 3


def test_a_failure_keeps_the_last_good_copy_and_says_since_when() -> None:
    time, source = ManualClock(), Source()
    feed = RefreshingSource(100, time.clock)
    contents = feed.snapshot(source.look).contents
    time.seconds, source.fails = time.seconds + 100, True
    older = feed.snapshot(source.look)
    assert older.contents is contents
    assert older.stale == Stale("host: it is away", "2023-11-14T22:30:00Z")
    source.fails = False
    assert feed.snapshot(source.look).stale is not None  # not at once
    time.seconds += 30
    assert feed.snapshot(source.look).stale is None


def test_an_older_copy_that_the_source_gives_is_marked_and_asked_for_again_soon() -> None:
    time, source = ManualClock(), Source()
    source.stale = "the host is away"
    feed = RefreshingSource(100, time.clock)
    assert feed.snapshot(source.look).stale == Stale("the host is away", "1970-01-01T00:01:00Z")
    time.seconds += 30
    feed.snapshot(source.look)
    assert source.looks == 2


@pytest.mark.parametrize(("rests", "looks"), [(True, 1), (False, 3)])
def test_a_source_that_was_never_read_is_retried_at_once_or_after_a_rest(
    rests: bool, looks: int
) -> None:
    time, source = ManualClock(), Source()
    source.fails = True
    feed = RefreshingSource(100, time.clock, delay_retries=rests)
    for _ in range(3):
        with pytest.raises(SkillhallError, match="host: it is away"):
            feed.snapshot(source.look)
    assert source.looks == looks
    time.seconds, source.fails = time.seconds + 30, False
    assert feed.snapshot(source.look).commit == "1"


def test_those_who_come_first_share_one_look() -> None:
    source, hold = Source(), threading.Event()
    source.hold = hold
    feed = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(feed.snapshot, source.look) for _ in range(8)]
        assert source.begun.acquire(timeout=DEADLINE)
        hold.set()
        found = {id(item.result(DEADLINE)) for item in waiting}
    assert len(found) == 1
    assert source.looks == 1


def test_while_somebody_looks_the_others_get_what_is_there() -> None:
    time, source, hold = ManualClock(), Source(), threading.Event()
    feed = RefreshingSource(100, time.clock)
    feed.snapshot(source.look)
    assert source.begun.acquire(timeout=DEADLINE)
    time.seconds, source.commit, source.hold = time.seconds + 100, "2", hold
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(feed.snapshot, source.look)
        assert source.begun.acquire(timeout=DEADLINE)
        assert [feed.snapshot(source.look).commit for _ in range(3)] == ["1"] * 3
        hold.set()
        assert looking.result(DEADLINE).commit == "2"
    assert source.looks == 2


def test_a_refresh_is_not_content_with_a_look_that_began_before_it() -> None:
    source, hold = Source(), threading.Event()
    source.hold = hold
    feed = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(5) as pool:
        early = pool.submit(feed.snapshot, source.look)
        assert source.begun.acquire(timeout=DEADLINE)
        source.commit = "2"
        late = [pool.submit(feed.refresh, source.look) for _ in range(4)]
        hold.set()
        assert early.result(DEADLINE).commit == "1"
        assert {item.result(DEADLINE).commit for item in late} == {"2"}
    assert 2 <= source.looks <= 5


def test_news_that_come_during_a_look_are_not_lost() -> None:
    source, hold = Source(), threading.Event()
    source.hold = hold
    feed = RefreshingSource(100, ManualClock().clock)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(feed.snapshot, source.look)
        assert source.begun.acquire(timeout=DEADLINE)
        source.commit = "2"
        feed.expire()
        hold.set()
        assert looking.result(DEADLINE).commit == "1"
    assert feed.seconds_until_due == 0
    assert feed.snapshot(source.look).commit == "2"


def test_a_failed_look_frees_the_way_for_the_next_one() -> None:
    def broken(_kept: PromptContents | None) -> FetchedContents:
        raise ZeroDivisionError

    feed, source = RefreshingSource(100, ManualClock().clock), Source()
    with pytest.raises(ZeroDivisionError):
        feed.snapshot(broken)
    assert feed.snapshot(source.look).commit == "1"


def test_a_copy_that_was_cleared_away_is_read_again(tmp_path: Path) -> None:
    copies = CheckoutStore(str(tmp_path))
    feed = RefreshingSource(100, ManualClock().clock)

    def look(kept: PromptContents | None) -> FetchedContents:
        return FetchedContents(kept or PromptContents("s", copies.put(FileTree({"a.md": b""}))))

    feed.snapshot(look)
    copies.close()
    assert feed.cached_snapshot is None
    assert feed.snapshot(look).contents.is_readable
