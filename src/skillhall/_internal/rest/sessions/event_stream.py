"""Stream of workspace events, as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from pydantic import AfterValidator
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from skillhall._internal.http.access import actor_of, needs
from skillhall._internal.http.credentials import client_id
from skillhall._internal.http.errors import error_response
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEAD_REQUEST_KEY, REQUEST_ID_KEY
from skillhall._internal.http.response import encode_json
from skillhall._internal.http.streaming import OpenStreams, run_until_disconnect
from skillhall._internal.http.thread_pool import Work, WorkerPool
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import DatabaseRoute
from skillhall._internal.rest.responses import BAD_REQUEST, describe_content
from skillhall._internal.rest.route_parameters import OptionalBlankText, OptionalText, WorkspaceDep
from skillhall._internal.rest.sessions.requests import API_PREFIX
from skillhall._internal.rest.sessions.responses import DATABASE_ERRORS
from skillhall._internal.rest.sessions.session_viewers import SessionViewers
from skillhall._internal.workspace import DATABASE_RESTORED, Event
from skillhall._internal.workspace.serializers import serialize_event
from skillhall._internal.workspace.unit_of_work import is_id
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import SkillhallError

HEARTBEAT_SECONDS = 15.0  # proxies close idle connections
_MAX_QUEUED_BATCHES = 10_000  # a slower client is disconnected and connects again
_RETRY_MESSAGE = b"retry: 2000\n\n"
_RESET_MESSAGE = b"event: reset\ndata: {}\n\n"
_HEARTBEAT_MESSAGE = b": still here\n\n"
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
router = APIRouter(tags=["sessions"], route_class=DatabaseRoute, responses=DATABASE_ERRORS)


def _check_session(session: str | None) -> str | None:
    if session is not None and not is_id(session):
        raise ValueError("'session' must be the id of a session")
    return session


@router.get(
    f"{API_PREFIX}/events",
    response_class=Response,
    responses=describe_content("A stream of server-sent events.", "text/event-stream")
    | BAD_REQUEST,
)
@needs(Action.READ)
def stream_events(  # noqa: PLR0913, PLR0917 - the parameters of the request
    request: Request,
    workspace: WorkspaceDep,
    after: Annotated[
        OptionalText,
        Query(
            description="Id of the last received event.",
            json_schema_extra={"pattern": "^[0-9]{1,18}$"},
        ),
    ] = None,
    session: Annotated[
        OptionalText,
        Query(description="Only events of this session."),
        AfterValidator(_check_session),
    ] = None,
    with_viewers: Annotated[
        OptionalText,
        Query(alias="viewers", description="`true`: also who has the board of the session open."),
    ] = None,
    last_event_id: Annotated[OptionalBlankText, Header(include_in_schema=False)] = None,
) -> Response:
    """Stream new events, starting after Last-Event-ID or `after` if one is sent.

    If that event is unknown or too old, a `reset` event comes first. A `reset` event is also sent
    when a backup is restored.
    """
    text = (last_event_id or "").strip() or after or ""
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004
        raise HttpError("invalid_argument", "'after' or Last-Event-ID is not the id of an event")
    opened = workspace.open()
    first, last = opened.event_range()
    # The event may have been pruned, or belong to a database that was restored since.
    has_gap = bool(text) and not first - 1 <= int(text) <= last
    start = int(text) if text and not has_gap else last
    queue = _EventQueue(opened, start, session, has_gap=has_gap)
    state = request.app.state
    viewers = state.viewers if session and with_viewers == "true" else None
    return _EventStreamResponse(
        queue, state.wait_for_shutdown, state.pools[Work.DATABASE], state.streams, viewers
    )


class _EventQueue:
    """Events for one client, each once and in order."""

    def __init__(
        self, workspace: Workspace, last_seq: int, session: str | None, *, has_gap: bool
    ) -> None:
        self.workspace = workspace
        self.session = session
        self.has_gap = has_gap
        self._last_seq = last_seq
        self._queue: asyncio.Queue[Sequence[Event]] = asyncio.Queue(_MAX_QUEUED_BATCHES)
        self.has_overflowed = False

    def subscribe(self) -> Callable[[], None]:
        """Queue new events until the returned function is called."""
        loop = asyncio.get_running_loop()

        def on_events(events: Sequence[Event]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._enqueue, events)

        if self.workspace.event_source is None:
            return lambda: None
        return self.workspace.event_source.subscribe(on_events)

    def read_backlog(self) -> list[bytes]:
        """Return the next page of past events; empty at the end."""
        return self._format_new_events(self.workspace.events(self._last_seq, self.session))

    async def next_events(self) -> list[bytes]:
        """Wait for new events and return them."""
        return self._format_new_events(await self._queue.get())

    def wake(self) -> None:
        """Make `next_events` return, with no events if there are none."""
        self._enqueue(())

    def _enqueue(self, events: Sequence[Event]) -> None:
        try:
            self._queue.put_nowait(events)
        except asyncio.QueueFull:
            self.has_overflowed = True

    def _format_new_events(self, events: Sequence[Event]) -> list[bytes]:
        # An event can be both in the backlog and in the queue.
        messages = []
        for event in events:
            if event.seq > self._last_seq:
                self._last_seq = event.seq
                if self.session in (None, event.session):
                    messages.append(_format_event(event))
                if event.kind == DATABASE_RESTORED:  # every session may have changed
                    messages.append(b"id: %d\n%s" % (event.seq, _RESET_MESSAGE))
        return messages


class _EventStreamResponse(Response):
    """Streaming response that ends when the client disconnects or the server stops."""

    def __init__(
        self,
        queue: _EventQueue,
        wait_for_shutdown: Callable[[], Awaitable[None]],
        workers: WorkerPool,
        open_streams: OpenStreams,
        viewers: SessionViewers | None,
    ) -> None:
        super().__init__()
        self._queue = queue
        self._wait_for_shutdown = wait_for_shutdown
        self._workers = workers
        self._open_streams = open_streams
        self._viewers = viewers
        self._viewer: object = None
        self._sent_viewers: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects or the server stops."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._open_streams.add(client_id(scope)))
            except HttpError as error:
                await error_response(error, scope[REQUEST_ID_KEY])(scope, receive, send)
            else:
                if self._viewers is not None and self._queue.session is not None:
                    name, wake = actor_of(scope).user, self._queue.wake
                    viewer = self._viewers.join(self._queue.session, name, wake)
                    self._viewer = stack.enter_context(viewer)
                await self._stream(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
        if not scope.get(HEAD_REQUEST_KEY):
            # If the database fails, the stream ends. The client gets the error on reconnecting.
            with contextlib.suppress(SkillhallError):
                await run_until_disconnect(
                    self._send_events(send), receive, self._wait_for_shutdown
                )
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, send: Send) -> None:
        queue = self._queue
        # Subscribe before reading the backlog, so that no event falls between the two.
        unsubscribe = queue.subscribe()
        try:
            await _send_chunk(send, _RETRY_MESSAGE)
            if queue.has_gap:
                await _send_chunk(send, _RESET_MESSAGE)
            while messages := await self._workers.run(queue.read_backlog):
                await _send_chunk(send, b"".join(messages))
            while not queue.has_overflowed:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        messages = await queue.next_events()
                except TimeoutError:
                    messages = [_HEARTBEAT_MESSAGE]
                messages += self._format_viewers()
                if messages:
                    await _send_chunk(send, b"".join(messages))
        finally:
            unsubscribe()

    def _format_viewers(self) -> list[bytes]:
        """Return a message with the other viewers, if they changed since the last one."""
        if self._viewers is None or self._queue.session is None:
            return []
        others = self._viewers.list_others(self._queue.session, self._viewer)
        if others == self._sent_viewers:
            return []
        self._sent_viewers = others
        return [b"event: viewers\ndata: %s\n\n" % encode_json({"viewers": others})]


async def _send_chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _format_event(event: Event) -> bytes:
    data = encode_json(serialize_event(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), data)
