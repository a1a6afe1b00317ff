"""Threads for blocking calls, so that they do not block the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerPool:
    """Runs blocking functions in a limited number of threads."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: CapacityLimiter | None = None

    async def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Run the function in a thread. On shutdown the server does not wait for it."""
        if self._limiter is None:  # needs a running event loop
            self._limiter = CapacityLimiter(self._threads)
        return await run_sync(
            lambda: function(*arguments, **named), abandon_on_cancel=True, limiter=self._limiter
        )
