"""A feed: one source that is looked at again when its time is over, by one thread at a time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import run_low_priority
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.prompts.prompt_model import Stale
from skillhall._internal.prompts.prompt_snapshot import PromptSnapshotView
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.prompts.prompt_snapshot import PromptContents

    # What is there now; given what was there, which is returned if nothing is new.
    Fetch: TypeAlias = Callable[[PromptContents | None], "FetchedContents"]

RETRY_INTERVAL = 30.0  # seconds after a failure until the next look that nobody asks for
_ALREADY_DUE = float("-inf")


class Clock(NamedTuple):
    """How time is told: durations by the one, moments by the other, in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time


class FetchedContents(NamedTuple):
    """What a look found; `stale` says why it is an older copy, which was new at `seen`."""

    contents: PromptContents
    stale_reason: str = ""
    checked_at: float = 0.0  # seconds since 1970


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One look; others wait for it to land."""

    number: int
    future: Future[PromptSnapshotView] = field(default_factory=Future)


class RefreshingSource:
    """The snapshots of one source. How to look is given with each call, and not kept."""

    def __init__(self, ttl: float, clock: Clock, *, delay_retries: bool = False) -> None:
        """`rests` is for a source without which one can live: a failure is not repeated at once."""
        self.ttl = ttl
        self.checked_at = ""  # when the last look was
        self._clock = clock
        self._delays_retries = delay_retries
        self._lock = threading.Lock()
        self._due_at = _ALREADY_DUE
        self._expire_count = 0  # how often somebody said that there is news
        self._cached: PromptSnapshotView | None = None
        self._failure = ""  # in words: an exception would keep the token of its call alive
        self._succeeded_at = 0.0
        self._logged_version: object = None  # the contents whose skipped prompts were logged last
        self._current_refresh = _Refresh(0)
        self._current_refresh.future.cancel()

    @property
    def cached_snapshot(self) -> PromptSnapshotView | None:
        """The last good snapshot, if it can still be read."""
        kept = self._cached
        return kept if kept is not None and kept.contents.is_readable else None

    @property
    def failure(self) -> str:
        """Why the last look failed, if it did."""
        return self._failure

    @property
    def seconds_until_due(self) -> float:
        """How long until the next look is due."""
        return max(self._due_at - self._clock.monotonic(), 0.0)

    def expire(self) -> None:
        """Let the next call look, also if a look is under way that may have come too early."""
        self._expire_count += 1
        self._due_at = _ALREADY_DUE

    def snapshot(self, fetch: Fetch) -> PromptSnapshotView:
        """What is there, as far as is known; only the first whose time is over looks again.

        Raises: SkillhallError, OSError if there is nothing yet and it cannot be read.
        """
        kept = self.cached_snapshot
        flight = self._current_refresh
        if kept is not None and (self.seconds_until_due or not flight.future.done()):
            return kept
        if kept is None and self._delays_retries and self._failure and self.seconds_until_due:
            raise SkillhallError(self._failure)
        return self._wait_for_refresh(fetch, flight.number - (not flight.future.done()))

    def refresh(self, fetch: Fetch) -> PromptSnapshotView:
        """What is there now, by a look that begins after this call. Raises: as `snapshot`."""
        return self._wait_for_refresh(fetch, self._current_refresh.number)

    def _wait_for_refresh(self, fetch: Fetch, after: int) -> PromptSnapshotView:
        """What a flight with a higher number than `after` finds: somebody's, or our own."""
        while True:
            with self._lock:
                flight = self._current_refresh
                is_ours = flight.number <= after and flight.future.done()
                if is_ours:
                    flight = self._current_refresh = _Refresh(flight.number + 1)
            if is_ours:
                self._run_refresh(flight, fetch)
            if flight.number > after:
                return flight.future.result()
            flight.future.exception()  # waits for it, whatever it brings

    def _run_refresh(self, refresh: _Refresh, fetch: Fetch) -> None:
        try:
            snapshot = self._fetch_snapshot(fetch)
        except BaseException as error:
            refresh.future.set_exception(error)
            raise
        refresh.future.set_result(snapshot)

    def _fetch_snapshot(self, fetch: Fetch) -> PromptSnapshotView:
        kept, expired = self.cached_snapshot, self._expire_count
        try:
            looked = run_low_priority(lambda: fetch(kept.contents if kept else None))
        except (SkillhallError, OSError) as error:
            self._failure = describe_error(error)
            self._set_due(RETRY_INTERVAL, expired)
            if kept is None:
                raise
            snapshot = replace(kept, stale=Stale(self._failure, format_utc(self._succeeded_at)))
        else:
            self._failure = ""
            self._log_skipped(looked.contents)
            snapshot = self._accept_result(looked, expired)
        self._cached = snapshot
        return snapshot

    def _accept_result(self, result: FetchedContents, expire_count: int) -> PromptSnapshotView:
        if result.stale_reason:
            self._succeeded_at = result.checked_at
            self._set_due(min(self.ttl, RETRY_INTERVAL), expire_count)
            return PromptSnapshotView(
                result.contents, Stale(result.stale_reason, format_utc(result.checked_at))
            )
        self._succeeded_at = self._clock.now()
        self._set_due(self.ttl, expire_count)
        return PromptSnapshotView(result.contents)

    def _log_skipped(self, contents: PromptContents) -> None:
        """Log what is skipped, once per commit; a folder has none, but a digest of its files."""
        version = contents.commit, contents.digest, contents.skipped
        if version != self._logged_version:
            self._logged_version = version
            log_skipped(contents.label, contents.skipped)

    def _set_due(self, seconds: float, expire_count: int) -> None:
        self._due_at = self._clock.monotonic() + seconds
        if self._expire_count != expire_count:
            self._due_at = _ALREADY_DUE
        self.checked_at = format_utc(self._clock.now())


def describe_error(error: Exception) -> str:
    """What went wrong, without paths of this machine."""
    return f"the cache: {format_os_error(error)}" if isinstance(error, OSError) else str(error)


def format_utc(seconds: float) -> str:
    """The ISO time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
