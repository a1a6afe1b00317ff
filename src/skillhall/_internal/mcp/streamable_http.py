"""MCP over streamable HTTP, as middleware that handles one path."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillhall._internal.http.access import check_action
from skillhall._internal.http.errors import error_response
from skillhall._internal.http.request import MAX_JSON_BYTES, REQUEST_ID_KEY, ROUTE_KEY
from skillhall._internal.policy.access.roles import Action
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup, TaskStatus
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillhall._internal.mcp.server import SkillServer

PATH = "/mcp"
ACTION = Action.READ  # of every request; a method or a tool may need another one
_BODY_TIMEOUT = 20.0  # seconds to receive a request body
_CLOSE_GRACE = 1.0  # seconds for streams to send their last message
_RETRY_AFTER = b"60"  # seconds, sent when there are too many sessions
_DISCONNECT: Message = {"type": "http.disconnect"}


class SessionLimits(NamedTuple):
    """Limits for the sessions of clients with a protocol before 2026."""

    max_sessions: int
    idle_timeout: int  # seconds without a request or an open stream


class McpMiddleware:
    """Handles requests to `PATH` and passes all others to the app.

    The first request to `PATH` loads the MCP SDK in a thread: a server without MCP clients starts
    faster and needs less memory. Use one instance per app: a session manager runs only once.
    Without `session_limits`, the server is stateless.
    """

    def __init__(
        self,
        app: ASGIApp,
        build_server: Callable[[], SkillServer],
        wait_for_shutdown: Callable[[], Awaitable[None]],
        session_limits: SessionLimits | None,
    ) -> None:
        self._app = app
        self._build_server = build_server
        self._wait_for_shutdown = wait_for_shutdown
        self._limits = session_limits
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = asyncio.Lock()
        self._tasks: TaskGroup  # open during the lifespan of the app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request or the lifespan of the app."""
        if scope["type"] == "lifespan":
            return self._run_lifespan(scope, receive, send)
        if scope["type"] == "http" and scope["path"] == PATH:
            scope[ROUTE_KEY] = PATH
            try:
                check_action(scope, ACTION)
            except SkillhallError as error:
                return error_response(error, scope[REQUEST_ID_KEY])(scope, receive, send)
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

        async with anyio.create_task_group() as self._tasks:
            await self._app(scope, receive, defer_shutdown)
            self._tasks.cancel_scope.cancel()
        for message in deferred:
            await send(message)

    async def _start_manager(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                # Not in a worker pool: this runs once, and a full pool would refuse it.
                server, manager = await asyncio.to_thread(self._build_manager)
                await self._tasks.start(self._run_manager, server, manager)
                self._manager = manager
            return self._manager

    def _build_manager(self) -> tuple[SkillServer, StreamableHTTPSessionManager]:
        # A part of the SDK, see the class.
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415

        server, limits = self._build_server(), self._limits
        return server, StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=limits is None,
            max_request_body_size=MAX_JSON_BYTES,
            session_idle_timeout=limits.idle_timeout if limits else None,
            max_sessions=limits.max_sessions if limits else None,
        )

    async def _run_manager(
        self,
        server: SkillServer,
        manager: StreamableHTTPSessionManager,
        *,
        task_status: TaskStatus[None],
    ) -> None:
        async with manager.run():
            task_status.started()
            await self._wait_for_shutdown()
            server.subscriptions.close()
            await anyio.sleep_forever()

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK respond. On shutdown or a body timeout, it sees a disconnect."""
        is_body_complete = is_response_open = False

        async def receive_message() -> Message:
            nonlocal is_body_complete
            if is_body_complete:
                return await self._receive_until_closing(receive)
            try:
                async with asyncio.timeout(_BODY_TIMEOUT):
                    message = await receive()
            except TimeoutError:
                message = _DISCONNECT
            # A disconnect has no `more_body` either, which ends the body.
            is_body_complete = not message.get("more_body", False)
            return message

        async def send_message(message: Message) -> None:
            nonlocal is_response_open
            is_start = message["type"] == "http.response.start"
            if is_start and message["status"] == HTTPStatus.SERVICE_UNAVAILABLE:
                # There are too many sessions.
                message["headers"] = [*message["headers"], (b"retry-after", _RETRY_AFTER)]
            is_response_open = is_start or message.get("more_body", False)
            await send(message)

        manager = self._manager or await self._start_manager()
        await manager.handle_request(scope, receive_message, send_message)
        if is_response_open:  # the stream was cut off
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _receive_until_closing(self, receive: Receive) -> Message:
        """Return the next message, or a disconnect if the server shuts down.

        The disconnect comes `_CLOSE_GRACE` seconds after the shutdown begins.
        """

        async def wait_until_closing() -> None:
            await self._wait_for_shutdown()
            await asyncio.sleep(_CLOSE_GRACE)

        receiving = asyncio.ensure_future(receive())
        closing = asyncio.ensure_future(wait_until_closing())
        try:
            await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else _DISCONNECT
        finally:
            receiving.cancel()
            closing.cancel()
