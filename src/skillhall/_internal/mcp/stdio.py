"""MCP over stdin and stdout, for one client."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter

from skillhall._internal.mcp.handshake import complete_line

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from skillhall._internal.mcp.handshake import FirstLine
    from skillhall._internal.mcp.server import SkillServer


def serve_stdio(server: SkillServer, first_line: FirstLine) -> None:
    """Serve until the client disconnects. stdout is reserved for the protocol.

    `first_line` has already been read from stdin, and may have been answered.
    """
    data = complete_line(first_line.data)

    async def serve() -> None:
        async with stdio_server() as (reader, writer):
            replayed = _ReplayingReader(reader, data)
            filtered = _FilteringWriter(writer, first_line.answered_id)
            await server.run(replayed, filtered, server.create_initialization_options())

    anyio.run(serve)


class _Stream:
    """Wrapper of an SDK stream, which it closes."""

    def __init__(self, inner: ReadStream[Any] | WriteStream[Any]) -> None:
        self._closed_with_this = inner

    async def aclose(self) -> None:
        await self._closed_with_this.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _ReplayingReader(_Stream):
    """Reads the client's messages, starting with the line that was already read."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], line: bytes) -> None:
        super().__init__(inner)
        self._inner = inner
        self._line = line

    async def receive(self) -> SessionMessage | Exception:
        line, self._line = self._line, b""
        if not line:
            return await self._inner.receive()
        text = line.decode("utf-8", "replace")
        try:  # as the SDK's reader of stdin
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError as error:
            return error

    def __aiter__(self) -> _ReplayingReader:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _FilteringWriter(_Stream):
    """Writes messages to the client, except the response that it already has."""

    def __init__(self, inner: WriteStream[SessionMessage], answered_id: str | int | None) -> None:
        super().__init__(inner)
        self._inner = inner
        self._answered_id = answered_id

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        answered = self._answered_id
        if answered is None or not isinstance(message, JSONRPCResponse) or message.id != answered:
            await self._inner.send(item)
        else:
            self._answered_id = None  # the client may use the id again


def log_to_stderr() -> None:
    """Log warnings to stderr.

    Records of the SDK are dropped, since they may contain client data.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name, level in (("skillhall.mcp", "WARNING"), ("mcp", "CRITICAL")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
