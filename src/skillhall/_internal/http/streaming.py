"""Long-running responses that end when the client disconnects or the server stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator

from starlette.types import Receive

from skillhall._internal.http.http_error import HttpError

MAX_STREAMS = 1000
MAX_STREAMS_PER_CLIENT = 250
_RETRY_HEADERS = ((b"retry-after", b"60"),)


class OpenStreams:
    """Limit on the streams of one server. Use it in the event loop only."""

    def __init__(
        self, max_streams: int = MAX_STREAMS, max_per_client: int = MAX_STREAMS_PER_CLIENT
    ) -> None:
        self._max_streams = max_streams
        self._max_per_client = max_per_client
        self._by_client: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._by_client.total()

    @contextlib.contextmanager
    def add(self, client: str) -> Iterator[None]:
        """Count a stream of a client. Raises: HttpError if there are too many."""
        if len(self) >= self._max_streams:
            message = f"the server has reached its limit of {len(self)} open streams"
            raise HttpError("overloaded", f"{message}; try again later", headers=_RETRY_HEADERS)
        if self._by_client.get(client, 0) >= self._max_per_client:
            message = f"you have reached the limit of {self._max_per_client} open streams"
            raise HttpError("overloaded", f"{message}; close one of them", headers=_RETRY_HEADERS)
        self._by_client[client] += 1
        try:
            yield
        finally:
            self._by_client[client] -= 1
            if not self._by_client[client]:
                del self._by_client[client]


async def run_until_disconnect(
    work: Coroutine[None, None, None],
    receive: Receive,
    wait_for_shutdown: Callable[[], Awaitable[None]],
) -> None:
    """Run `work` until it ends, the client disconnects or the server shuts down.

    Raises: errors from `work`.
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
