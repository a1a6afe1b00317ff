"""Threads for blocking calls, so that they do not block the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerPool:
    """Runs blocking functions in a limited number of threads.

    Unlike Starlette's `run_in_threadpool`, it does not wait for them when the server stops.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        # One limiter for each event loop: tests run several servers in one process.
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"skillhall-workers-{id(self)}")

    async def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Run the function in a thread and return its result."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self._threads)
            self._limiter.set(limiter)
        return await run_sync(
            lambda: function(*arguments, **named), abandon_on_cancel=True, limiter=limiter
        )


WORKERS = WorkerPool(16)  # for git, disk and database access
