"""Threads: bounded pools, periodic polls, low-priority jobs, and limits on collector pauses."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

_NICE_INCREMENT = 5
_MAX_PAUSE = 0.01  # seconds of CPU time
_MAX_INTERVAL = 86400.0  # seconds; `Event.wait` overflows with much larger values
_IDLE_SECONDS = 10.0  # until a thread without work ends


class PoolFull(Exception):
    """All threads of a pool are busy, and its queue is full."""


class OwnerLimitReached(PoolFull):
    """One owner has used up its share of a pool's queue."""


class PoolStatus(NamedTuple):
    """Numbers of threads and jobs of a pool, for metrics."""

    name: str
    threads: int  # at most
    busy: int  # threads with work, including work whose caller has given up
    waiting: int
    rejected: int  # in total


class _Job(NamedTuple, Generic[_T]):
    work: Callable[[], _T]
    future: Future[_T]
    owner: str


class BoundedPool:
    """Limited number of daemon threads with a limited queue.

    Unlike `ThreadPoolExecutor`, it refuses work instead of queueing without limit, and the process
    does not wait for its threads when it exits.
    """

    def __init__(
        self, name: str, threads: int, queue_size: int = 0, *, max_per_owner: int = 0
    ) -> None:
        """Create a pool with at most `max_per_owner` threads per owner; 0 means no limit.

        The other jobs of an owner wait, and may fill at most half of the queue.
        """
        self.name = name
        self._max_threads = threads
        self._queue_size = queue_size
        self._max_per_owner = max_per_owner
        self._queue: deque[_Job[object]] = deque()
        self._busy_by_owner: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._thread_count = 0
        self._busy = 0
        self._rejected = 0

    @property
    def status(self) -> PoolStatus:
        """Current numbers of threads and jobs."""
        waiting = len(self._queue)
        return PoolStatus(self.name, self._max_threads, self._busy, waiting, self._rejected)

    def submit(self, work: Callable[[], _T], owner: str = "") -> Future[_T]:
        """Run `work` in a thread as soon as one is free.

        The future can be cancelled until then. Raises: PoolFull, OwnerLimitReached.
        """
        job = _Job(work, Future[_T](), owner)
        with self._changed:
            self._drop_cancelled()
            try:
                self._check_room(owner)
            except PoolFull:
                self._rejected += 1
                raise
            self._queue.append(job)  # type: ignore[arg-type] # its result is not used here
            idle_threads = self._thread_count - self._busy
            if idle_threads >= len(self._queue) or self._thread_count == self._max_threads:
                self._changed.notify()
            else:
                self._thread_count += 1
                name = f"skillhall-{self.name}"
                threading.Thread(target=self._run, name=name, daemon=True).start()
        return job.future

    def _check_room(self, owner: str) -> None:
        if self._is_limited(owner):
            free = self._max_per_owner - self._busy_by_owner[owner]
            waiting = sum(job.owner == owner for job in self._queue)
            if waiting >= free + self._queue_size // 2:
                raise OwnerLimitReached
        if len(self._queue) >= self._max_threads - self._busy + self._queue_size:
            raise PoolFull

    def _is_limited(self, owner: str) -> bool:
        return bool(owner and self._max_per_owner)

    def give_up(self, future: Future[_T]) -> bool:
        """Reject work that has waited too long; return False if it has already started."""
        if not future.cancel():
            return False
        with self._changed:
            self._rejected += 1
            self._drop_cancelled()
        return True

    def _drop_cancelled(self) -> None:
        if any(job.future.cancelled() for job in self._queue):
            self._queue = deque(job for job in self._queue if not job.future.cancelled())

    def _run(self) -> None:
        while (job := self._next_job()) is not None:
            if job.future.set_running_or_notify_cancel():
                try:
                    result = job.work()
                except BaseException as error:  # noqa: BLE001 - raised again by the future
                    self._finish(job)
                    job.future.set_exception(error)
                else:
                    self._finish(job)
                    job.future.set_result(result)
                    del result
            else:
                self._finish(job)
            del job  # an idle thread must not keep the work alive

    def _next_job(self) -> _Job[object] | None:
        with self._changed:
            while (job := self._take_job()) is None:
                if not self._changed.wait(_IDLE_SECONDS) and not self._queue:
                    self._thread_count -= 1
                    return None
            self._busy += 1
            if self._is_limited(job.owner):
                self._busy_by_owner[job.owner] += 1
            return job

    def _take_job(self) -> _Job[object] | None:
        """Remove and return the first job whose owner may occupy another thread."""
        for position, job in enumerate(self._queue):
            is_limited = self._is_limited(job.owner)
            if not is_limited or self._busy_by_owner[job.owner] < self._max_per_owner:
                del self._queue[position]
                return job
        return None

    def _finish(self, job: _Job[object]) -> None:
        # Before the future is done, so that its callers find the thread free.
        with self._changed:
            self._busy -= 1
            if self._is_limited(job.owner):
                self._busy_by_owner[job.owner] -= 1
                self._busy_by_owner = +self._busy_by_owner  # without zero counts


def run_low_priority(work: Callable[[], _T]) -> _T:
    """Run `work` in a low-priority thread and return its result, or raise its error."""
    future: Future[_T] = Future()

    def run() -> None:
        if sys.platform == "linux":  # elsewhere, only whole processes have a priority
            thread = threading.get_native_id()
            nice = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, nice + _NICE_INCREMENT)
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            future.set_exception(error)

    threading.Thread(target=run, name="skillhall-low-priority", daemon=True).start()
    return future.result()


class PollingThread:
    """Thread that calls `poll` at the start, after each interval, and when woken.

    An interval of `None` means: only when woken. `poll` must not raise.
    """

    def __init__(
        self, poll: Callable[[], None], interval: Callable[[], float | None], name: str
    ) -> None:
        self._poll = poll
        self._interval = interval
        self._wake_event = threading.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Make the thread poll now, or again after the current poll. Does not block."""
        self._wake_event.set()

    def close(self, timeout: float = 5.0) -> None:
        """Stop polling; wait up to `timeout` seconds for a poll in progress."""
        self._is_stopped = True
        self._wake_event.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._is_stopped:
            self._poll()
            interval = self._interval()
            self._wake_event.wait(None if interval is None else min(interval, _MAX_INTERVAL))
            self._wake_event.clear()


class _PauseLimit:
    """Exempts all present objects from collection after a collection that took too long.

    Reference counts still free exempt objects. Only cycles of exempt objects that become garbage
    later are never freed. This is rare: the next long collection needs as many new objects as this
    one had.
    """

    def __init__(self) -> None:
        self._started = 0.0

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        # A collection runs in one thread. Its CPU time shows how many objects there are, while
        # elapsed time also shows how busy the machine is.
        if phase == "start":
            self._started = time.thread_time()
        elif time.thread_time() - self._started > _MAX_PAUSE:
            gc.freeze()


def limit_collector_pauses() -> None:
    """Exempt all objects of this process from garbage collection, once it has started.

    A full collection visits every object: those of all modules, and tens of thousands for a large
    catalog. It took 150 ms on a server with all modules, every few seconds after a start.
    """
    if not any(isinstance(callback, _PauseLimit) for callback in gc.callbacks):
        gc.callbacks.append(_PauseLimit())
    gc.freeze()
