"""Stdio transport of MCP: pipes to a command that the user configured."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Final, cast

from skillhall._internal.sources.mcp.transport import (
    METHOD_NOT_FOUND,
    is_response,
    parse_message,
    serialize_message,
)
from skillhall.errors import SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.net.connection import Timeout
    from skillhall._internal.sources.mcp.transport import Message

_CHUNK: Final = 64 * 1024  # bytes
_MAX_QUEUED_CHUNKS: Final = 16
_MAX_SERVER_REQUESTS: Final = 100  # requests from the server that are answered
_MAX_REQUEST_ID_LENGTH: Final = 100  # characters
_SHUTDOWN_TIMEOUT: Final = 2.0  # seconds for a graceful exit
_POLL_INTERVAL: Final = 0.1  # seconds
_COMMAND_ENDED = "the command exited or closed its output"
_RUN_MANUALLY_HINT = "run the command manually to see its output"


class StdioTransport:
    """Running command as a transport; its stderr is discarded."""

    def __init__(
        self, host: str, command: Sequence[str], environment: Mapping[str, str], folder: str
    ) -> None:
        """Start the command in a folder. Raises: SourceUnavailable."""
        self.host = host
        self.protocol_version = ""
        self._buffer = bytearray()
        self._is_out_of_sync = False  # the start of the next message is unknown
        self._server_request_count = 0
        self._chunks: queue.Queue[bytes] = queue.Queue(_MAX_QUEUED_CHUNKS)
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - configured by the user, no shell
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,  # its child processes are killed with it
            )
        except (OSError, ValueError):
            problem = "the command cannot be started"
            raise SourceUnavailable(host, problem, _RUN_MANUALLY_HINT) from None
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._reader = threading.Thread(target=self._read_loop, daemon=True)
        # A separate thread, because a command that does not read its input would block us.
        self._writer = threading.Thread(target=self._write_loop, daemon=True)
        self._reader.start()
        self._writer.start()

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """Send a request and return its response. Raises: SourceUnavailable, TooLarge."""
        if self._is_out_of_sync:
            raise SourceUnavailable(self.host, "an earlier response exceeded the size limit")
        self._send(request)
        remaining = max_bytes
        while (line := self._read_line(remaining, timeout)) is not None:
            remaining -= len(line)
            message = parse_message(line)
            if message is None:
                problem = "its output is not a valid MCP message"
                raise SourceUnavailable(self.host, problem, _RUN_MANUALLY_HINT)
            if is_response(message, request):
                return message
            self._reply_to_server(message)
        raise SourceUnavailable(self.host, _COMMAND_ENDED, _RUN_MANUALLY_HINT)

    def notify(self, notification: Message, timeout: Timeout) -> None:  # noqa: ARG002 - of McpTransport
        """Send a notification."""
        self._send(notification)

    def close(self, *, force: bool = False) -> None:
        """Close the command's input, then kill it and its child processes.

        Without `force`, the command gets a moment to exit by itself.
        """
        self._is_closed.set()
        self._outbox.put(b"")
        if not force:
            self._reader.join(_SHUTDOWN_TIMEOUT)
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                if sys.platform == "win32":
                    self._process.kill()
                else:
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._writer.join(_SHUTDOWN_TIMEOUT)
        self._reader.join(_SHUTDOWN_TIMEOUT)
        with contextlib.suppress(OSError):
            self._stdout.close()

    def _send(self, message: Message) -> None:
        self._outbox.put(serialize_message(message) + b"\n")

    def _write_loop(self) -> None:
        """Send messages from the outbox until an empty one, then close the input."""
        with contextlib.suppress(OSError):  # the reader notices that the command exited
            while data := self._outbox.get():
                self._stdin.write(data)
                self._stdin.flush()
        with contextlib.suppress(OSError):
            self._stdin.close()

    def _read_line(self, max_bytes: int, timeout: Timeout) -> bytes | None:
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            try:
                chunk = self._chunks.get(timeout=timeout.next_timeout())
            except (queue.Empty, TimeoutError):
                problem = "the request timed out"
                raise SourceTimedOut(self.host, problem, _RUN_MANUALLY_HINT) from None
            if not chunk:
                return None
            self._buffer += chunk
            self._check_length(start, max_bytes)
        self._check_length(end, max_bytes)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _check_length(self, length: int, max_bytes: int) -> None:
        if length > max_bytes:
            self._is_out_of_sync = True
            raise TooLarge(self.host, max_bytes)

    def _reply_to_server(self, message: Message) -> None:
        """Answer pings and reject other requests from the server; ignore notifications.

        Raises: SourceUnavailable if there are too many requests, or one has a very long id.
        """
        if "method" not in message or "id" not in message:
            return
        self._server_request_count += 1
        is_too_long = len(str(message["id"])) > _MAX_REQUEST_ID_LENGTH
        if self._server_request_count > _MAX_SERVER_REQUESTS or is_too_long:
            raise SourceUnavailable(
                self.host, "it sent too many requests, or one with a very long id"
            )
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            self._send({**reply, "result": {}})
        else:
            error = {"code": METHOD_NOT_FOUND, "message": "this client does not support the method"}
            self._send({**reply, "error": error})

    def _read_loop(self) -> None:
        """Queue the command's output; an empty chunk marks its end."""
        chunk = b"?"
        while chunk:
            try:
                chunk = os.read(self._stdout.fileno(), _CHUNK)
            except (OSError, ValueError):
                chunk = b""
            while not self._is_closed.is_set():  # wait for space in the queue
                with contextlib.suppress(queue.Full):
                    self._chunks.put(chunk, timeout=_POLL_INTERVAL)
                    break
