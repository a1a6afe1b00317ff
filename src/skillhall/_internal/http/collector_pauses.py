"""Limits the pauses of Python's garbage collector, in which a server answers nobody."""

from __future__ import annotations

import gc
import time
from typing import Any

MAX_PAUSE = 0.01  # seconds of CPU time


class _PauseLimit:
    """Exempts all present objects from collection after a collection that took too long.

    Reference counts still free exempt objects. What is lost are cycles that become garbage later,
    and only those that existed at such a moment: the next long collection needs as many new
    objects as this one had.
    """

    def __init__(self) -> None:
        self._started = 0.0

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        # A collection runs in one thread. Its CPU time shows how many objects there are, while
        # elapsed time also shows how busy the machine is.
        if phase == "start":
            self._started = time.thread_time()
        elif time.thread_time() - self._started > MAX_PAUSE:
            gc.freeze()


def limit_collector_pauses() -> None:
    """Exempt all objects of this process from garbage collection, once it has started.

    A full collection visits every object: those of all modules, and tens of thousands for a large
    catalog. It took 150 ms of a server with all modules, every few seconds after a start.
    """
    if not any(isinstance(callback, _PauseLimit) for callback in gc.callbacks):
        gc.callbacks.append(_PauseLimit())
    gc.freeze()
