"""A line to an MCP server that is a program: a command that a person configured, and its pipes."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Final, cast

from skillhall._internal.sources.mcp.transport import METHOD_NOT_FOUND, is_answer, parsed, written
from skillhall.errors import SourceTimedOut, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.net.connection import Patience
    from skillhall._internal.sources.mcp.transport import Message

_CHUNK: Final = 64 * 1024  # bytes
_AHEAD: Final = 16  # chunks that are read before somebody asks for them
_QUESTIONS: Final = 100  # of a server that are answered
_LONG: Final = 100  # characters of what it calls a question
_GRACE: Final = 2.0  # seconds for a program to end by itself
_TICK: Final = 0.1  # seconds
_ENDED = "the command ended, or closed its output"
_BY_HAND = "run the command by hand to see what it says"


class StdioLine:
    """A running command; its words on stderr are not read."""

    def __init__(
        self, host: str, command: Sequence[str], environment: Mapping[str, str], folder: str
    ) -> None:
        """Start the command in a folder. Raises: SourceUnavailable."""
        self.host = host
        self.version = ""
        self._said = bytearray()  # and not yet taken
        self._is_lost = False  # whether nobody knows where the next message begins
        self._questions = 0
        self._chunks: queue.Queue[bytes] = queue.Queue(_AHEAD)
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the person configured, no shell
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,  # what it starts ends with it
            )
        except (OSError, ValueError):
            raise SourceUnavailable(host, "its command cannot be started", _BY_HAND) from None
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._reader = threading.Thread(target=self._read_ahead, daemon=True)
        # Apart, since a program that does not listen must not stop us.
        self._writer = threading.Thread(target=self._write_behind, daemon=True)
        self._reader.start()
        self._writer.start()

    def ask(self, request: Message, at_most: int, patience: Patience) -> Message:
        """The response to a request. Raises: SourceUnavailable, SourceTimedOut, TooLarge."""
        if self._is_lost:
            raise SourceUnavailable(self.host, "it sends more than was asked for")
        self._send(request)
        for message in self._messages(at_most, patience):
            if is_answer(message, request):
                return message
            self._answer(message)
        raise SourceUnavailable(self.host, _ENDED, _BY_HAND)

    def tell(self, notification: Message, patience: Patience) -> None:  # noqa: ARG002 - as of Line
        """Send what has no response."""
        self._send(notification)

    def close(self, *, at_once: bool = False) -> None:
        """Close the command's input, and give it a moment to end by itself if there is time.

        Neither the command nor anything that it started is left.
        """
        self._is_closed.set()
        self._outbox.put(b"")
        if not at_once:
            self._reader.join(_GRACE)
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                if sys.platform == "win32":
                    self._process.kill()
                else:
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._writer.join(_GRACE)
        self._reader.join(_GRACE)
        with contextlib.suppress(OSError):
            self._stdout.close()

    def _send(self, message: Message) -> None:
        self._outbox.put(written(message) + b"\n")

    def _write_behind(self) -> None:
        """Send what is put into the outbox, until something empty is; then close the input."""
        with contextlib.suppress(OSError):  # a program that ended is noticed where it is read
            while data := self._outbox.get():
                self._stdin.write(data)
                self._stdin.flush()
        with contextlib.suppress(OSError):
            self._stdin.close()

    def _messages(self, at_most: int, patience: Patience) -> Iterator[Message]:
        """What the server says, until it ends. Raises: SourceUnavailable, TooLarge."""
        left = at_most
        while (line := self._next_line(left, patience)) is not None:
            left -= len(line)
            message = parsed(line)
            if message is None:
                problem = "it says something that is no message of the protocol"
                raise SourceUnavailable(self.host, problem, _BY_HAND)
            yield message

    def _next_line(self, at_most: int, patience: Patience) -> bytes | None:
        looked = 0
        while (end := self._said.find(b"\n", looked)) < 0:
            looked = len(self._said)
            chunk = self._next_chunk(patience)
            if not chunk:
                return None
            self._said += chunk
            self._refuse_length(looked, at_most)
        self._refuse_length(end, at_most)
        line = bytes(self._said[:end])
        del self._said[: end + 1]
        return line

    def _refuse_length(self, length: int, at_most: int) -> None:
        if length > at_most:
            self._is_lost = True
            raise TooLarge(self.host, at_most)

    def _next_chunk(self, patience: Patience) -> bytes:
        try:
            return self._chunks.get(timeout=patience.next())
        except (queue.Empty, TimeoutError):
            raise SourceTimedOut(self.host, "it takes too long", _BY_HAND) from None

    def _answer(self, message: Message) -> None:
        """Tell a server that asks something that we do nothing for it; other words are let go."""
        if "method" not in message or "id" not in message:
            return
        self._questions += 1
        if self._questions > _QUESTIONS or len(str(message["id"])) > _LONG:
            raise SourceUnavailable(self.host, "it asks too much of us")
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            self._send({**reply, "result": {}})
        else:
            error = {"code": METHOD_NOT_FOUND, "message": "not offered here"}
            self._send({**reply, "error": error})

    def _read_ahead(self) -> None:
        """Move what the command says into the queue; an empty chunk is its end."""
        chunk = b"?"
        while chunk:
            try:
                chunk = os.read(self._stdout.fileno(), _CHUNK)
            except (OSError, ValueError):
                chunk = b""
            self._put(chunk)

    def _put(self, chunk: bytes) -> None:
        """Wait for room, as long as somebody may ask for it."""
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Full):
                self._chunks.put(chunk, timeout=_TICK)
                return
