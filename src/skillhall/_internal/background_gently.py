"""Long work beside a server's answers: done by a thread that lets all others go first."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

_NICE = 5  # how much further back than the process the thread stands


def run_gently(work: Callable[[], _T]) -> _T:
    """What the work returns. Raises: what it raises."""
    done: Future[_T] = Future()

    def run() -> None:
        _step_back()
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            done.set_exception(error)

    threading.Thread(target=run, name="skillhall-gently", daemon=True).start()
    return done.result()


def _step_back() -> None:
    if sys.platform == "linux":  # where a thread has a priority of its own
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, now + _NICE)
