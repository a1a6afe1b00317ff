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

_NICE_INCREMENT = 5  # how much further back than the process the thread stands


def run_low_priority(work: Callable[[], _T]) -> _T:
    """What the work returns. Raises: what it raises."""
    done: Future[_T] = Future()

    def run() -> None:
        _lower_priority()
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            done.set_exception(error)

    threading.Thread(target=run, name="skillhall-gently", daemon=True).start()
    return done.result()


def _lower_priority() -> None:
    if sys.platform == "linux":  # where a thread has a priority of its own
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, now + _NICE_INCREMENT)


_MAX_INTERVAL = 86400.0  # seconds; the system cannot wait for centuries


class PollingThread:
    """Calls `look` at the start, after `pause()` seconds, and whenever it is woken.

    A pause of `None` is for ever. `look` says how it went elsewhere; it must not raise.
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
        """Look now."""
        self._wake_event.set()

    def close(self, timeout: float = 5.0) -> None:
        """Stop; a look that is under way may end on its own after that many seconds."""
        self._is_stopped = True
        self._wake_event.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._is_stopped:
            self._poll()
            pause = self._interval()
            self._wake_event.wait(None if pause is None else min(pause, _MAX_INTERVAL))
            self._wake_event.clear()
