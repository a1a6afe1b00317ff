"""Connections whose requests must come in time and within bounds; uvicorn itself sets none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from skillhall._internal.http.request import (
    HEAD_TOO_LARGE_MESSAGE,
    MAX_HEAD_BYTES,
    OVERSIZED_HEAD_KEY,
)
from skillhall._internal.http.request_middleware import new_request_id
from skillhall._internal.http.response import failure_response

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_HEAD_TIMEOUT = 20.0  # seconds until they are there
_WHITESPACE = b" \t"
_STATUS_LINES = {400: b"400 Bad Request", 431: b"431 Request Header Fields Too Large"}


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when the head of a request is too large or too slow."""

    _is_in_head = False
    _pending_head_bytes = 0  # bytes of a head that is not whole yet
    _parsed_head_bytes = 0  # bytes of the parts of a head that were read
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; count what belongs to a head."""
        super().data_received(data)
        if self._is_in_head:
            self._pending_head_bytes += len(data)
            if self._pending_head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._reject(431, "REQUEST_HEADERS_TOO_LARGE", HEAD_TOO_LARGE_MESSAGE)
        if self._is_awaiting_data():
            self._start_deadline()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head, self._pending_head_bytes, self._parsed_head_bytes = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its address."""
        self._parsed_head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; the parser leaves spaces after a value, which are no part of it."""
        self._parsed_head_bytes += len(name) + len(value) + 4
        super().on_header(name, value.strip(_WHITESPACE))

    def on_headers_complete(self) -> None:
        """Its head is whole; one that came at once may be too large all the same."""
        self._is_in_head = False
        self._cancel_deadline()
        if self._parsed_head_bytes > MAX_HEAD_BYTES:
            self.scope[OVERSIZED_HEAD_KEY] = True  # type: ignore[literal-required] # ours
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or a head that the parser cannot hold, in our own shape."""
        if self._parsed_head_bytes > MAX_HEAD_BYTES:
            self._reject(431, "REQUEST_HEADERS_TOO_LARGE", HEAD_TOO_LARGE_MESSAGE)
        else:
            self._reject(400, "BAD_REQUEST", msg)

    def _reject(self, status: int, code: str, message: str) -> None:
        """Answer a request that never reaches the app, and close the connection."""
        answer = failure_response(status, {"code": code, "message": message}, new_request_id())
        body = b"".join(answer.parts)
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        closing = b"connection: close\r\n\r\n"
        self.transport.write(head % (_STATUS_LINES[status], len(body)) + closing + body)
        self.transport.close()

    def _is_awaiting_data(self) -> bool:
        """For the rest of a head, or for the rest of a request that is answered already."""
        if self._is_in_head:
            return True
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        if cycle is None or not cycle.response_complete:
            return False
        return self.timeout_keep_alive_task is None

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_HEAD_TIMEOUT, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
