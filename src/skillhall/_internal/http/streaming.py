"""Long-running responses that end when the client disconnects or the server stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine

from starlette.types import Receive


async def run_until_disconnect(
    work: Coroutine[None, None, None],
    receive: Receive,
    wait_for_shutdown: Callable[[], Awaitable[None]],
) -> None:
    """Run `work` until it ends, the client disconnects or the server shuts down.

    Raises: errors of `work`.
    """
    task = asyncio.ensure_future(work)
    waits = (_wait_for_disconnect(receive), wait_for_shutdown())
    stops = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait([task, *stops], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in (task, *stops):
            future.cancel()
        await asyncio.wait([task, *stops])
        for stop in stops:
            with contextlib.suppress(asyncio.CancelledError):
                stop.result()
    with contextlib.suppress(asyncio.CancelledError):
        task.result()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
