"""Thread pools for blocking calls, separate for disk, database and other hosts.

If the queue of a pool is full, calls are rejected immediately. A call that takes too long is
answered with an error, but its thread stays occupied until the call ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

from skillhall._internal.background import BoundedPool, OwnerLimitReached, PoolFull, PoolStatus
from skillhall._internal.http.http_error import HttpError

_P = ParamSpec("_P")
_T = TypeVar("_T")

REQUEST_TIMEOUT = 150.0  # seconds; longer than a fetch, shorter than the timeouts of clients
MAX_FETCHES = 16
MAX_FETCHES_PER_CLIENT = 12
_DISK_THREADS = 16
_DATABASE_THREADS = 16
_DISK_QUEUE = 256  # short calls, which may come in bursts
_DATABASE_QUEUE = 64
_FETCH_QUEUE = 64
_MAX_WAIT = 5.0  # seconds for a thread to become free
_RETRY_HEADERS = ((b"retry-after", b"5"),)


class Work(Enum):
    """What a blocking call may wait for."""

    DISK = "disk"
    DATABASE = "database"
    STORE = "store"  # user skills and uploads: on disk, or in a database that servers share
    FETCH = "fetch"  # git and other requests to other hosts


class _Wording(NamedTuple):
    """Wording of a pool's error messages."""

    subject: str  # what the threads wait for
    timeout_code: str


_WORDINGS = {
    "disk": _Wording("the disk", "server_timeout"),
    "database": _Wording("the database", "server_timeout"),
    "fetch": _Wording("other hosts", "upstream_timeout"),
}
_DEFAULT_WORDING = _Wording("other requests", "server_timeout")


class WorkerPool:
    """Runs blocking functions in a limited number of threads.

    Unlike Starlette's `run_in_threadpool`, it does not wait for them when the server stops.
    """

    def __init__(
        self,
        threads: int,
        queue_size: int = 64,
        *,
        name: str = "workers",
        max_per_client: int = 0,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        """`timeout` is the number of seconds after which a call fails."""
        self._pool = BoundedPool(name, threads, queue_size, max_per_owner=max_per_client)
        self._max_per_client = max_per_client
        self._timeout = timeout
        self._wording = _WORDINGS.get(name, _DEFAULT_WORDING)

    @property
    def status(self) -> PoolStatus:
        """Current counts, for metrics."""
        return self._pool.status

    async def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Run the function in a thread and return its result.

        Raises: HttpError if no thread becomes free or the function takes too long, and errors from
        the function.
        """
        return await self.run_for("", partial(function, *arguments, **named))

    async def run_for(self, client: str, work: Callable[[], _T]) -> _T:
        """Run `work` in a thread, within the client's limit. Raises: same as `run`."""
        loop = asyncio.get_running_loop()
        try:
            job = self._pool.submit(work, client)
        except PoolFull as error:
            raise self._full_error(is_client=isinstance(error, OwnerLimitReached)) from None
        done: asyncio.Future[_T] = loop.create_future()

        def report(finished: Future[_T]) -> None:  # in the worker thread
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_copy_result, finished, done)

        def stop_waiting() -> None:
            if not done.done() and self._pool.give_up(job):
                done.set_exception(self._full_error(is_client=bool(client)))

        def time_out() -> None:
            if not done.done():
                done.set_exception(self._timeout_error())

        job.add_done_callback(report)
        timers = loop.call_later(_MAX_WAIT, stop_waiting), loop.call_later(self._timeout, time_out)
        try:
            return await done
        finally:
            for timer in timers:
                timer.cancel()
            job.cancel()  # only has an effect on work that has not begun

    def _full_error(self, *, is_client: bool) -> HttpError:
        status, subject = self.status, self._wording.subject
        message = f"the server is busy: {status.busy} requests are waiting for {subject}"
        if is_client and status.busy < status.threads:
            message = f"{self._max_per_client} of your requests are waiting for {subject}"
        return HttpError("overloaded", f"{message}; try again later", headers=_RETRY_HEADERS)

    def _timeout_error(self) -> HttpError:
        subject, code = self._wording
        message = (
            f"timed out after waiting {self._timeout:g} seconds for {subject}; "
            "a change may still be made"
        )
        return HttpError(code, message, headers=_RETRY_HEADERS)


def _copy_result(finished: Future[_T], done: asyncio.Future[_T]) -> None:
    if done.done() or finished.cancelled():  # the caller has given up
        return
    error = finished.exception()
    if error is None:
        done.set_result(finished.result())
    else:
        done.set_exception(error)


class PoolLimits(NamedTuple):
    """Configurable limits of the pools."""

    timeout: float = REQUEST_TIMEOUT
    fetches: int = MAX_FETCHES
    fetches_per_client: int = MAX_FETCHES_PER_CLIENT


DEFAULT_LIMITS = PoolLimits()


class WorkerPools:
    """The pools of one server."""

    def __init__(
        self, limits: PoolLimits = DEFAULT_LIMITS, *, store_in_database: bool = False
    ) -> None:
        """`store_in_database`: whether servers share a database of skills and uploads."""
        self.timeout = timeout = limits.timeout
        disk = WorkerPool(_DISK_THREADS, _DISK_QUEUE, name="disk", timeout=timeout)
        database = WorkerPool(_DATABASE_THREADS, _DATABASE_QUEUE, name="database", timeout=timeout)
        fetch = WorkerPool(
            limits.fetches,
            _FETCH_QUEUE,
            name="fetch",
            max_per_client=limits.fetches_per_client,
            timeout=timeout,
        )
        self._pools = {
            Work.DISK: disk,
            Work.DATABASE: database,
            Work.STORE: database if store_in_database else disk,
            Work.FETCH: fetch,
        }

    def __getitem__(self, work: Work) -> WorkerPool:
        """Return the pool for a kind of work."""
        return self._pools[work]

    def status(self) -> Sequence[PoolStatus]:
        """Return the current counts of every pool."""
        return [pool.status for pool in dict.fromkeys(self._pools.values())]
