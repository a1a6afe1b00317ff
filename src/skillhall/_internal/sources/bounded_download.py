"""Downloads of several files of one source, within one limit of time and one of bytes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from skillhall._internal.net.connection import DEFAULT_TOTAL_TIMEOUT, NetworkSettings
from skillhall._internal.net.fetch import FetchOptions, FetchResult, fetch
from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS
from skillhall.errors import SourceTimedOut, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.net.addresses import AddressPolicy
    from skillhall._internal.sources.base import Progress

MAX_SECONDS: Final = 120.0  # for all files together; the limit of git repositories
_MAX_PARALLEL_DOWNLOADS = 4
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(slots=True)
class BoundedDownload:
    """Downloads of one source."""

    policy: AddressPolicy
    progress: Progress | None = None
    _deadline: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)
    _received: int = 0
    _lock: Lock = field(default_factory=Lock)

    def fetch(
        self,
        url: str,
        max_bytes: int = DEFAULT_ARCHIVE_LIMITS.total,
        options: FetchOptions = FetchOptions(),  # noqa: B008 - frozen
    ) -> FetchResult:
        """Fetch one file. Raises: as `net.fetch.fetch`."""
        seconds = min(self._deadline - time.monotonic(), DEFAULT_TOTAL_TIMEOUT)
        if seconds <= 0:
            problem = f"the downloads took more than {MAX_SECONDS:.0f} seconds"
            raise SourceTimedOut(WebUrl.parse(url).host, problem)
        result = fetch(
            url,
            max_bytes=max(0, min(max_bytes, DEFAULT_ARCHIVE_LIMITS.total - self._received)),
            policy=self.policy,
            network=NetworkSettings(total=seconds),
            options=options,
        )
        with self._lock:
            self._received += len(result.data)
            if self._received > DEFAULT_ARCHIVE_LIMITS.total:
                raise TooLarge(WebUrl.parse(url).host, DEFAULT_ARCHIVE_LIMITS.total)
            if self.progress is not None:
                self.progress("Downloading", self._received, 0)
        return result


def run_parallel(action: Callable[[_T], _R], items: Sequence[_T]) -> tuple[_R, ...]:
    """Return the results of an action in order; after an exception, the rest is not started."""
    with ThreadPoolExecutor(_MAX_PARALLEL_DOWNLOADS) as pool:
        running = [pool.submit(action, item) for item in items]
        try:
            return tuple(one.result() for one in running)
        finally:
            pool.shutdown(cancel_futures=True)
