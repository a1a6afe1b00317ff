"""Work that blocks, done beside the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerPool:
    """Threads for work that may touch git or the disk, at most so many at once."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: CapacityLimiter | None = None

    async def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """What the function returns. A server that stops does not wait for it."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._threads)
        return await run_sync(
            lambda: function(*arguments, **named), abandon_on_cancel=True, limiter=self._limiter
        )
