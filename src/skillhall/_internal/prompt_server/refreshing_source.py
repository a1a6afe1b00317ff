"""Source with a TTL; while one thread refreshes it, others get the last snapshot."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import run_low_priority
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.hints import TOKEN_HINTS, find_hint
from skillhall._internal.prompt_server.prompt_model import Stale
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall.errors import PromptsSourceError, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot

    # Takes the previous snapshot, and returns the same object if nothing changed. The result is
    # stale if the source could only be read from a cache.
    Fetch: TypeAlias = Callable[[PromptSnapshot | None], PromptSnapshot]

RETRY_INTERVAL = 30.0  # seconds until the next automatic refresh after a failure
_ALREADY_DUE = float("-inf")
_THREAD = "skillhall-refresh-source"


class Clock(NamedTuple):
    """Clocks for durations and for timestamps, in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class _Refresh:
    """Refresh in progress, or the last one. Other threads wait for its future."""

    number: int
    future: Future[PromptSnapshot] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _BackgroundRefresh:
    """Refresh in a thread of its own, for callers that do not wait for its end."""

    started: float  # of the monotonic clock
    future: Future[PromptSnapshot] = field(default_factory=Future)


class RefreshingSource:
    """Snapshots of one source.

    Callers pass the fetch function; it is not stored, because it may contain a request's token.
    """

    def __init__(self, ttl: float, clock: Clock, *, delay_retries: bool = False) -> None:
        """Create a source without a snapshot; `ttl` is in seconds.

        With `delay_retries`, a failed first fetch is retried only after `RETRY_INTERVAL`.
        """
        self.ttl = ttl
        self.checked_at = ""  # ISO time of the last refresh
        self._clock = clock
        self._delays_retries = delay_retries
        self._lock = threading.Lock()
        self._due_at = _ALREADY_DUE
        self._expire_count = 0
        self._cached: PromptSnapshot | None = None
        # Why the last refresh failed. Stored as text, because an exception would keep the token of
        # its request alive.
        self.failure = ""
        self._succeeded_at = ""  # ISO time
        self._logged_version: object = None  # contents whose skipped items were logged last
        self._background: _BackgroundRefresh | None = None  # in progress
        self._is_slow = False  # since a caller has stopped waiting, until a refresh succeeds
        self._current_refresh = _Refresh(0)
        self._current_refresh.future.cancel()  # makes it done: no refresh is in progress

    @property
    def cached_snapshot(self) -> PromptSnapshot | None:
        """Last good snapshot, if it is still readable."""
        snapshot = self._cached
        return snapshot if snapshot is not None and snapshot.is_readable else None

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the next refresh is due."""
        return max(self._due_at - self._clock.monotonic(), 0.0)

    @property
    def is_refreshing(self) -> bool:
        """Whether a refresh is in progress."""
        return not self._current_refresh.future.done()

    def expire(self) -> None:
        """Make a refresh due.

        A refresh already in progress may have read the old state, so it does not count.
        """
        self._expire_count += 1
        self._due_at = _ALREADY_DUE

    def snapshot(self, fetch: Fetch, max_wait: float | None = None) -> PromptSnapshot:
        """Return the cached snapshot. If a refresh is due, the first caller runs it.

        With `max_wait`, the refresh runs in its own thread. Callers wait for it up to that many
        seconds, or not at all while the source is known to be slow.
        Raises: SkillhallError, OSError if there is no snapshot and fetching fails.
        """
        cached = self.cached_snapshot
        refresh = self._current_refresh
        if cached is not None and (self.seconds_until_due or not refresh.future.done()):
            return cached
        if cached is None and self._delays_retries and self.failure and self.seconds_until_due:
            raise SkillhallError(self.failure)
        # Join a refresh that is in progress, else start one.
        after = refresh.number - (not refresh.future.done())
        if max_wait is None:
            return self._wait_for_refresh(fetch, after)
        return self._wait_briefly(fetch, after, max_wait)

    def refresh(self, fetch: Fetch) -> PromptSnapshot:
        """Return the result of a refresh started after this call. Raises: as `snapshot`."""
        return self._wait_for_refresh(fetch, self._current_refresh.number)

    def _wait_briefly(self, fetch: Fetch, after: int, max_wait: float) -> PromptSnapshot:
        """Return a background refresh's result, or the cached snapshot if it is slow."""
        with self._lock:
            background = self._background
            if background is None or background.future.done():
                background = self._background = _BackgroundRefresh(time.monotonic())
                arguments = (background.future, fetch, after)
                threading.Thread(
                    target=self._run_refresh, args=arguments, name=_THREAD, daemon=True
                ).start()
        remaining = background.started + max_wait - time.monotonic()
        wait([background.future], 0 if self._is_slow else max(remaining, 0))
        if background.future.done():
            return background.future.result()
        self._is_slow = True
        cached = self.cached_snapshot
        if cached is None:
            raise SkillhallError(self.failure or f"no response within {max_wait:g} seconds")
        return cached

    def _run_refresh(self, future: Future[PromptSnapshot], fetch: Fetch, after: int) -> None:
        try:
            snapshot = self._wait_for_refresh(fetch, after)
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting threads
            future.set_exception(error)
        else:
            self._is_slow = False
            future.set_result(snapshot)
        with self._lock:
            if self._background is not None and self._background.future is future:
                self._background = None  # it would keep an old checkout on disk

    def _wait_for_refresh(self, fetch: Fetch, after: int) -> PromptSnapshot:
        """Return the result of a refresh numbered above `after`, started by any thread."""
        while True:
            with self._lock:
                refresh = self._current_refresh
                is_ours = refresh.number <= after and refresh.future.done()
                if is_ours:
                    refresh = self._current_refresh = _Refresh(refresh.number + 1)
            if is_ours:
                try:
                    refresh.future.set_result(self._fetch_snapshot(fetch))
                except BaseException as error:
                    refresh.future.set_exception(error)
                    raise
            if refresh.number > after:
                return refresh.future.result()
            refresh.future.exception()  # waits for it and ignores its result

    def _fetch_snapshot(self, fetch: Fetch) -> PromptSnapshot:
        cached, expire_count = self.cached_snapshot, self._expire_count
        try:
            previous = None if cached is None else cached.with_stale(None)
            # Requests wait for the first fetch, so it has normal priority.
            snapshot = (
                fetch(None) if previous is None else run_low_priority(lambda: fetch(previous))
            )
        except (SkillhallError, OSError) as error:
            self.failure = describe_error(error)
            self._set_due(RETRY_INTERVAL, expire_count)
            if cached is None:
                raise
            snapshot = cached.with_stale(Stale(self.failure, self._succeeded_at))
        else:
            self.failure = ""
            # Skipped items are logged once per commit, or once per content of a folder.
            version = snapshot.commit, snapshot.digest, snapshot.skipped
            if version != self._logged_version:
                self._logged_version = version
                log_skipped(snapshot.label, snapshot.skipped)
            self._set_due(
                min(self.ttl, RETRY_INTERVAL) if snapshot.stale else self.ttl, expire_count
            )
            self._succeeded_at = snapshot.stale.since if snapshot.stale else self.checked_at
        self._cached = snapshot
        return snapshot

    def _set_due(self, seconds: float, expire_count: int) -> None:
        # If `expire` was called during the refresh, its result may already be outdated.
        is_expired = self._expire_count != expire_count
        self._due_at = _ALREADY_DUE if is_expired else self._clock.monotonic() + seconds
        self.checked_at = format_utc(self._clock.now())


def describe_error(error: Exception) -> str:
    """Describe an error without local paths."""
    return f"cache error: {format_os_error(error)}" if isinstance(error, OSError) else str(error)


def to_source_error(source: str, error: SkillhallError | OSError) -> PromptsSourceError:
    """Return the error for a request whose source cannot be read."""
    hint = find_hint(error, TOKEN_HINTS) if isinstance(error, SkillhallError) else ""
    return PromptsSourceError(source, describe_error(error), hint)


def format_utc(seconds: float) -> str:
    """Format a timestamp as an ISO time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
