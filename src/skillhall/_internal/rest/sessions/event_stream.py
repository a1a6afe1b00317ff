"""Events as they come, as a stream that browsers and programs read."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.http.errors import error_response
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEAD_REQUEST_KEY, HttpRequest
from skillhall._internal.http.response import encode_json
from skillhall._internal.http.streaming import run_until_disconnect
from skillhall._internal.rest.sessions.handlers import SessionHandlersBase
from skillhall._internal.workspace.serializers import serialize_event
from skillhall._internal.workspace.unit_of_work import is_id
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.workspace import Event
    from skillhall._internal.workspace.workspace import LazyWorkspace, Workspace

HEARTBEAT_SECONDS = 15.0  # seconds; proxies cut lines on which nothing is said
_MAX_QUEUED_BATCHES = 10_000  # events that a slow reader may be behind; it connects again then
_RETRY_MESSAGE = b"retry: 2000\n\n"
_HEARTBEAT_MESSAGE = b": still here\n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class EventHandlers(SessionHandlersBase):
    """The stream of events; `stopped` ends when the server is about to stop."""

    def __init__(
        self,
        workspace: LazyWorkspace,
        workers: WorkerPool,
        wait_for_shutdown: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(workspace, workers)
        self._wait_for_shutdown = wait_for_shutdown

    async def stream_events(self, request: Request) -> Response:
        """Every event from now on, or from the one after Last-Event-ID or `after`."""
        exchange = HttpRequest(request.scope, request.receive)
        try:
            after, session = _parse_query(exchange)
            desk = await self._run(lambda desk: desk)
            return await self._open_stream(desk, after, session)
        except SkillhallError as error:
            refused = error_response(error, exchange.request_id)
            headers = {name.decode(): value.decode() for name, value in refused.headers}
            return Response(b"".join(refused.parts), refused.status, headers)

    async def _open_stream(
        self, workspace: Workspace, after: int | None, session: str | None
    ) -> Response:
        first, last = await self._workers.run(workspace.event_range)
        is_lost = after is not None and not first - 1 <= after <= last
        start = last if after is None or is_lost else after
        stream = _EventQueue(workspace, start, session, has_gap=is_lost)
        return _EventStreamResponse(stream, self._workers, self._wait_for_shutdown)


class _EventQueue:
    """What one reader has still to hear, each event once and in order."""

    def __init__(
        self, workspace: Workspace, last_seq: int, session: str | None, *, has_gap: bool
    ) -> None:
        self.workspace = workspace
        self.session = session
        self.has_gap = has_gap
        self._last_seq = last_seq
        self._queue: asyncio.Queue[Sequence[Event]] = asyncio.Queue(_MAX_QUEUED_BATCHES)
        self._loop = asyncio.get_running_loop()
        self.has_overflowed = False

    def subscribe(self) -> Callable[[], None]:
        """Hear of new events, until the answer is called."""
        if self.workspace.event_source is None:
            return lambda: None
        return self.workspace.event_source.subscribe(self._on_events)

    def read_backlog(self) -> list[bytes]:
        """The next page of what happened before, as text; nothing once all is told."""
        return self._format_new_events(self.workspace.events(self._last_seq, self.session))

    async def next_events(self) -> list[bytes]:
        """What comes next, as text."""
        return self._format_new_events(await self._queue.get())

    def _on_events(self, events: Sequence[Event]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._enqueue, events)

    def _enqueue(self, events: Sequence[Event]) -> None:
        try:
            self._queue.put_nowait(events)
        except asyncio.QueueFull:
            self.has_overflowed = True

    def _format_new_events(self, events: Sequence[Event]) -> list[bytes]:
        told = []
        for event in events:
            if event.seq > self._last_seq:
                self._last_seq = event.seq
                if self.session in (None, event.session):
                    told.append(_format_event(event))
        return told


class _EventStreamResponse(Response):
    """The stream as an answer. It ends with its reader, or with the server."""

    def __init__(
        self,
        queue: _EventQueue,
        workers: WorkerPool,
        wait_for_shutdown: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._queue = queue
        self._workers = workers
        self._wait_for_shutdown = wait_for_shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell events until somebody hangs up."""
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
        if not scope.get(HEAD_REQUEST_KEY):
            # A database that fails ends the stream; its reader connects again and is told why.
            with contextlib.suppress(SkillhallError):
                await run_until_disconnect(
                    self._send_events(send), receive, self._wait_for_shutdown
                )
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, send: Send) -> None:
        stream = self._queue
        stop = stream.subscribe()
        try:
            await _send_chunk(send, _RETRY_MESSAGE)
            if stream.has_gap:
                await _send_chunk(send, b"event: reset\ndata: {}\n\n")
            while told := await self._workers.run(stream.read_backlog):
                await _send_chunk(send, b"".join(told))
            while not stream.has_overflowed:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        told = await stream.next_events()
                except TimeoutError:
                    told = [_HEARTBEAT_MESSAGE]
                if told:
                    await _send_chunk(send, b"".join(told))
        finally:
            stop()


async def _send_chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _format_event(event: Event) -> bytes:
    data = encode_json(serialize_event(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), data)


def _parse_query(request: HttpRequest) -> tuple[int | None, str | None]:
    asked = request.read_query(("after", "session"))
    header = (request.header(b"last-event-id") or b"").decode("latin-1").strip()
    text = header or asked.get("after", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004
        raise HttpError("invalid_argument", "after is the number of an event")
    session = asked.get("session")
    if session is not None and not is_id(session):
        raise HttpError("invalid_argument", "session is the id of a session")
    return (int(text) if text else None), session
