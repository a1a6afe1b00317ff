"""MCP over streamable HTTP, as middleware that handles one path."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from skillhall._internal.http.request import MAX_JSON_BYTES, ROUTE_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillhall._internal.mcp.server import SkillServer

PATH = "/mcp"
_BODY_TIMEOUT = 20.0  # seconds to receive a request body
_CLOSE_GRACE = 1.0  # seconds for streams to send their last message
_RETRY_AFTER = b"60"  # seconds, sent when there are too many sessions
_DISCONNECT: Message = {"type": "http.disconnect"}


class SessionLimits(NamedTuple):
    """Limits for the sessions of clients before protocol 2026."""

    max_sessions: int
    idle_timeout: int  # seconds without a request or an open stream


class McpMiddleware:
    """Handles requests to `PATH` and passes all others to the app.

    Use one instance per app: a session manager runs only once. Without `session_limits`, the server
    is stateless.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: SkillServer,
        wait_for_shutdown: Callable[[], Awaitable[None]],
        session_limits: SessionLimits | None,
    ) -> None:
        self._app = app
        self._server = server
        self._wait_for_shutdown = wait_for_shutdown
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=session_limits is None,
            max_request_body_size=MAX_JSON_BYTES,
            session_idle_timeout=session_limits.idle_timeout if session_limits else None,
            max_sessions=session_limits.max_sessions if session_limits else None,
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request or the lifespan of the app."""
        if scope["type"] == "lifespan":
            return self._run_lifespan(scope, receive, send)
        if scope["type"] == "http" and scope["path"] == PATH:
            scope[ROUTE_KEY] = PATH
            return self._handle_request(scope, receive, send)
        return self._app(scope, receive, send)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        deferred: list[Message] = []

        async def defer_shutdown(message: Message) -> None:
            # The process exits after this message, but the sessions are still open.
            if message["type"].startswith("lifespan.shutdown"):
                deferred.append(message)
            else:
                await send(message)

        async with self._manager.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_streams_on_shutdown)
            await self._app(scope, receive, defer_shutdown)
            tasks.cancel_scope.cancel()
        for message in deferred:
            await send(message)

    async def _close_streams_on_shutdown(self) -> None:
        await self._wait_for_shutdown()
        self._server.subscriptions.close()

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        sender = _ResponseSender(send)
        receiver = _RequestReceiver(receive, self._wait_for_shutdown)
        await self._manager.handle_request(scope, receiver.receive, sender.send)
        await sender.finish()


class _RequestReceiver:
    """Receives a request. Reports a disconnect on shutdown and on a body timeout."""

    def __init__(self, receive: Receive, wait_for_shutdown: Callable[[], Awaitable[None]]) -> None:
        self._receive = receive
        self._wait_for_shutdown = wait_for_shutdown
        self._is_body_complete = False

    async def receive(self) -> Message:
        """Return the next message."""
        if not self._is_body_complete:
            return await self._receive_body()
        receiving = asyncio.ensure_future(self._receive())
        stopping = asyncio.ensure_future(self._wait_until_closing())
        try:
            await asyncio.wait({receiving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else _DISCONNECT
        finally:
            receiving.cancel()
            stopping.cancel()

    async def _receive_body(self) -> Message:
        try:
            async with asyncio.timeout(_BODY_TIMEOUT):
                message = await self._receive()
        except TimeoutError:
            message = _DISCONNECT
        # A disconnect has no `more_body` either, which ends the body.
        self._is_body_complete = not message.get("more_body", False)
        return message

    async def _wait_until_closing(self) -> None:
        await self._wait_for_shutdown()
        await asyncio.sleep(_CLOSE_GRACE)


class _ResponseSender:
    """Sends a response, and ends a stream that was cut off."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_open = False

    async def send(self, message: Message) -> None:
        """Send a message."""
        is_start = message["type"] == "http.response.start"
        if is_start and message["status"] == HTTPStatus.SERVICE_UNAVAILABLE:  # too many sessions
            message["headers"] = [*message["headers"], (b"retry-after", _RETRY_AFTER)]
        self._is_open = is_start or message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        """End the response if it is still open."""
        if self._is_open:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
