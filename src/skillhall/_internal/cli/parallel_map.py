"""Applies a function to many items, on all cores if that is faster."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[str, int, int], None]

_T = TypeVar("_T")
_R = TypeVar("_R")
MIN_ITEMS = 500  # starting processes takes as long as checking a few hundred skills
_CHUNK_SIZE = 64
_STEP = "checking skills"
_PARENT_INTERVAL = 0.2  # seconds between checks whether the main process still exists


def parallel_map(
    function: Callable[[_T], _R],
    items: Sequence[_T],
    progress: Progress | None = None,
    step: str = _STEP,
) -> Iterator[_R]:
    """Call `function` with each item and yield the results in order.

    Results must be picklable. `progress` gets the step, the number of results so far and their
    total.
    """
    done = 0
    for result in _map_on_all_cores(function, items) if len(items) >= MIN_ITEMS else ():
        yield result
        done += 1
        if progress is not None:
            progress(step, done, len(items))
    # All items if there are few, or what is left after a process was killed.
    for item in islice(items, done, None):
        yield function(item)
        done += 1
        if progress is not None and len(items) >= MIN_ITEMS:
            progress(step, done, len(items))


def _map_on_all_cores(function: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R]:
    cores = _count_cores()
    if cores == 1:
        return
    # Forked processes have function and items already, so that only the results are pickled.
    pool = ProcessPoolExecutor(
        cores,
        get_context("fork"),
        initializer=_start_process,
        initargs=(function, items, os.getpid()),
    )
    try:
        for results in pool.map(_run_chunk, range(0, len(items), _CHUNK_SIZE)):
            yield from results
    except (BrokenProcessPool, OSError):
        return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _count_cores() -> int:
    """Return the number of cores for forked processes; 1 if forking is not safe."""
    # On macOS, system libraries may have started threads. A fork copies only the calling thread,
    # so locks of the others would never be released.
    if not sys.platform.startswith("linux") or threading.active_count() > 1:
        return 1
    return len(os.sched_getaffinity(0))


_work: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []  # of a forked process


def _start_process(function: Callable[[_T], _R], items: Sequence[_T], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl+C
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    _work.append((function, items))


def _exit_with(parent: int) -> None:
    """Exit when the parent process ends, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(_PARENT_INTERVAL)
    os._exit(1)


def _run_chunk(start: int) -> list[Any]:
    function, items = _work[0]
    return [function(item) for item in items[start : start + _CHUNK_SIZE]]
