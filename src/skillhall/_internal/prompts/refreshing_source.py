"""Source with a TTL: one thread at a time refreshes it, the others get the last snapshot."""

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

    # Takes the previous contents, and returns the same object if nothing changed.
    Fetch: TypeAlias = Callable[[PromptContents | None], "FetchedContents"]

RETRY_INTERVAL = 30.0  # seconds until the next automatic refresh after a failure
_ALREADY_DUE = float("-inf")


class Clock(NamedTuple):
    """Clocks for durations and for timestamps, in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time


class FetchedContents(NamedTuple):
    """Result of a fetch. If `stale_reason` is set, it was current at `checked_at`."""

    contents: PromptContents
    stale_reason: str = ""
    checked_at: float = 0.0  # seconds since 1970


@dataclass(frozen=True, slots=True)
class _Refresh:
    """Refresh in progress, or the last one. Other threads wait for its future."""

    number: int
    future: Future[PromptSnapshotView] = field(default_factory=Future)


class RefreshingSource:
    """Snapshots of one source. Callers pass the fetch function, which is not stored."""

    def __init__(self, ttl: float, clock: Clock, *, delay_retries: bool = False) -> None:
        """With `delay_retries`, a failed first fetch is not retried before `RETRY_INTERVAL`."""
        self.ttl = ttl
        self.checked_at = ""  # ISO time of the last refresh
        self._clock = clock
        self._delays_retries = delay_retries
        self._lock = threading.Lock()
        self._due_at = _ALREADY_DUE
        self._expire_count = 0
        self._cached: PromptSnapshotView | None = None
        # A string: an exception would keep the token of its request alive.
        self._failure = ""
        self._succeeded_at = 0.0
        self._logged_version: object = None  # contents whose skipped items were logged last
        self._current_refresh = _Refresh(0)
        self._current_refresh.future.cancel()

    @property
    def cached_snapshot(self) -> PromptSnapshotView | None:
        """Last good snapshot, if it is still readable."""
        snapshot = self._cached
        return snapshot if snapshot is not None and snapshot.contents.is_readable else None

    @property
    def failure(self) -> str:
        """Why the last refresh failed, or ""."""
        return self._failure

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the next refresh is due."""
        return max(self._due_at - self._clock.monotonic(), 0.0)

    def expire(self) -> None:
        """Make a refresh due. A refresh in progress may be too early and does not count."""
        self._expire_count += 1
        self._due_at = _ALREADY_DUE

    def snapshot(self, fetch: Fetch) -> PromptSnapshotView:
        """Return the cached snapshot. If a refresh is due, the first caller runs it.

        Raises: SkillhallError, OSError if there is no snapshot and fetching fails.
        """
        cached = self.cached_snapshot
        refresh = self._current_refresh
        if cached is not None and (self.seconds_until_due or not refresh.future.done()):
            return cached
        if cached is None and self._delays_retries and self._failure and self.seconds_until_due:
            raise SkillhallError(self._failure)
        return self._wait_for_refresh(fetch, refresh.number - (not refresh.future.done()))

    def refresh(self, fetch: Fetch) -> PromptSnapshotView:
        """Return the result of a refresh that starts after this call. Raises: as `snapshot`."""
        return self._wait_for_refresh(fetch, self._current_refresh.number)

    def _wait_for_refresh(self, fetch: Fetch, after: int) -> PromptSnapshotView:
        """Return the result of a refresh with a number above `after`: ours or another's."""
        while True:
            with self._lock:
                refresh = self._current_refresh
                is_ours = refresh.number <= after and refresh.future.done()
                if is_ours:
                    refresh = self._current_refresh = _Refresh(refresh.number + 1)
            if is_ours:
                self._run_refresh(refresh, fetch)
            if refresh.number > after:
                return refresh.future.result()
            refresh.future.exception()  # waits for it and ignores its result

    def _run_refresh(self, refresh: _Refresh, fetch: Fetch) -> None:
        try:
            snapshot = self._fetch_snapshot(fetch)
        except BaseException as error:
            refresh.future.set_exception(error)
            raise
        refresh.future.set_result(snapshot)

    def _fetch_snapshot(self, fetch: Fetch) -> PromptSnapshotView:
        cached, expire_count = self.cached_snapshot, self._expire_count
        try:
            result = run_low_priority(lambda: fetch(cached.contents if cached else None))
        except (SkillhallError, OSError) as error:
            self._failure = describe_error(error)
            self._set_due(RETRY_INTERVAL, expire_count)
            if cached is None:
                raise
            snapshot = replace(cached, stale=Stale(self._failure, format_utc(self._succeeded_at)))
        else:
            self._failure = ""
            self._log_skipped(result.contents)
            snapshot = self._accept_result(result, expire_count)
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
        """Log skipped items once per commit, or once per content of a folder."""
        version = contents.commit, contents.digest, contents.skipped
        if version != self._logged_version:
            self._logged_version = version
            log_skipped(contents.label, contents.skipped)

    def _set_due(self, seconds: float, expire_count: int) -> None:
        # `expire` was called during the refresh: its result may already be outdated.
        is_expired = self._expire_count != expire_count
        self._due_at = _ALREADY_DUE if is_expired else self._clock.monotonic() + seconds
        self.checked_at = format_utc(self._clock.now())


def describe_error(error: Exception) -> str:
    """Describe an error without local paths."""
    return f"the cache: {format_os_error(error)}" if isinstance(error, OSError) else str(error)


def format_utc(seconds: float) -> str:
    """Format a timestamp as an ISO time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
