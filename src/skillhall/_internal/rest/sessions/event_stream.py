"""Events as they come, as a stream that browsers and programs read."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.http.errors import error_answer
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import HEAD, Exchange
from skillhall._internal.http.response import encoded
from skillhall._internal.http.streaming import while_wanted
from skillhall._internal.rest.sessions.handlers import DeskCalls
from skillhall._internal.workspace.serializers import event_data
from skillhall._internal.workspace.unit_of_work import is_id
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.workspace import Event
    from skillhall._internal.workspace.workspace import Door, Workspace

HEARTBEAT = 15.0  # seconds; proxies cut lines on which nothing is said
_WAITING = 10_000  # events that a slow reader may be behind; it connects again then
_HELLO = b"retry: 2000\n\n"
_BEAT = b": still here\n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class EventCalls(DeskCalls):
    """The stream of events; `stopped` ends when the server is about to stop."""

    def __init__(
        self, door: Door, blocking: Blocking, stopped: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(door, blocking)
        self._stopped = stopped

    async def stream(self, request: Request) -> Response:
        """Every event from now on, or from the one after Last-Event-ID or `after`."""
        exchange = Exchange(request.scope, request.receive)
        try:
            after, session = _asked(exchange)
            desk = await self._do(lambda desk: desk)
            return await self._opened(desk, after, session)
        except SkillhallError as error:
            refused = error_answer(error, exchange.request_id)
            headers = {name.decode(): value.decode() for name, value in refused.headers}
            return Response(b"".join(refused.parts), refused.status, headers)

    async def _opened(self, desk: Workspace, after: int | None, session: str | None) -> Response:
        first, last = await self._blocking.run(desk.event_range)
        is_lost = after is not None and not first - 1 <= after <= last
        start = last if after is None or is_lost else after
        stream = _Stream(desk, start, session, is_lost=is_lost)
        return _Streamed(stream, self._blocking, self._stopped)


class _Stream:
    """What one reader has still to hear, each event once and in order."""

    def __init__(self, desk: Workspace, last: int, session: str | None, *, is_lost: bool) -> None:
        self.desk = desk
        self.session = session
        self.is_lost = is_lost
        self._last = last
        self._queue: asyncio.Queue[Sequence[Event]] = asyncio.Queue(_WAITING)
        self._loop = asyncio.get_running_loop()
        self.is_behind = False

    def listen(self) -> Callable[[], None]:
        """Hear of new events, until the answer is called."""
        if self.desk.feed is None:
            return lambda: None
        return self.desk.feed.subscribe(self._hear)

    def earlier(self) -> list[bytes]:
        """The next page of what happened before, as text; nothing once all is told."""
        return self._told(self.desk.events(self._last, self.session))

    async def next(self) -> list[bytes]:
        """What comes next, as text."""
        return self._told(await self._queue.get())

    def _hear(self, events: Sequence[Event]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._take, events)

    def _take(self, events: Sequence[Event]) -> None:
        try:
            self._queue.put_nowait(events)
        except asyncio.QueueFull:
            self.is_behind = True

    def _told(self, events: Sequence[Event]) -> list[bytes]:
        told = []
        for event in events:
            if event.seq > self._last:
                self._last = event.seq
                if self.session in (None, event.session):
                    told.append(_text(event))
        return told


class _Streamed(Response):
    """The stream as an answer. It ends with its reader, or with the server."""

    def __init__(
        self, stream: _Stream, blocking: Blocking, stopped: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._stream = stream
        self._blocking = blocking
        self._stopped = stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell events until somebody hangs up."""
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
        if not scope.get(HEAD):
            # A database that fails ends the stream; its reader connects again and is told why.
            with contextlib.suppress(SkillhallError):
                await while_wanted(self._tell(send), receive, self._stopped)
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send) -> None:
        stream = self._stream
        stop = stream.listen()
        try:
            await _say(send, _HELLO)
            if stream.is_lost:
                await _say(send, b"event: reset\ndata: {}\n\n")
            while told := await self._blocking.run(stream.earlier):
                await _say(send, b"".join(told))
            while not stream.is_behind:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        told = await stream.next()
                except TimeoutError:
                    told = [_BEAT]
                if told:
                    await _say(send, b"".join(told))
        finally:
            stop()


async def _say(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _text(event: Event) -> bytes:
    data = encoded(event_data(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), data)


def _asked(exchange: Exchange) -> tuple[int | None, str | None]:
    asked = exchange.query(("after", "session"))
    header = (exchange.header(b"last-event-id") or b"").decode("latin-1").strip()
    text = header or asked.get("after", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004
        raise Refused("invalid_argument", "after is the number of an event")
    session = asked.get("session")
    if session is not None and not is_id(session):
        raise Refused("invalid_argument", "session is the id of a session")
    return (int(text) if text else None), session
