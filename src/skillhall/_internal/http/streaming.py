"""Work for an answer that takes a while: it ends with its reader, or with the server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from starlette.types import Receive


async def run_until_disconnect(
    work: Coroutine[None, None, None],
    receive: Receive,
    wait_for_shutdown: Callable[[], Awaitable[None]],
) -> None:
    """Do the work until it is done, nobody waits for it, or the server is about to stop.

    Raises what the work raises.
    """
    task = asyncio.ensure_future(work)
    ends = [
        asyncio.ensure_future(one) for one in (_wait_for_disconnect(receive), wait_for_shutdown())
    ]
    try:
        await asyncio.wait([task, *ends], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in (task, *ends):
            one.cancel()
        await asyncio.wait([task, *ends])
        for one in ends:
            with contextlib.suppress(asyncio.CancelledError):
                one.result()
    with contextlib.suppress(asyncio.CancelledError):
        task.result()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
