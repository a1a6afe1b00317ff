"""Threads for background work: periodic polls and low-priority jobs."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

_NICE_INCREMENT = 5
_MAX_INTERVAL = 86400.0  # seconds; `Event.wait` overflows with much larger values


def run_low_priority(work: Callable[[], _T]) -> _T:
    """Run `work` in a low-priority thread and return its result. Raises: its errors."""
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
        """Make the thread poll now, or once more if it is polling; returns at once."""
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
