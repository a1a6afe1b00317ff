"""HTTP protocol with limits on the size and the duration of request heads.

uvicorn has no such limits.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from skillhall._internal.http.request import (
    HEAD_TOO_LARGE_MESSAGE,
    MAX_HEAD_BYTES,
    OVERSIZED_HEAD_KEY,
)
from skillhall._internal.http.request_middleware import new_request_id
from skillhall._internal.http.response import failure_response

_HEAD_TIMEOUT = 20.0  # seconds
_WHITESPACE = b" \t"
_STATUS_LINES = {400: b"400 Bad Request", 431: b"431 Request Header Fields Too Large"}


class BoundedProtocol(HttpToolsProtocol):
    """Connection that is closed if a request head is too large or arrives too slowly."""

    _is_in_head = False
    _pending_head_bytes = 0  # received while the head is incomplete
    _parsed_head_bytes = 0  # URL and headers
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline for the first request."""
        super().connection_made(transport)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data and check the size of the head."""
        super().data_received(data)
        if self._is_in_head:
            self._pending_head_bytes += len(data)
            if self._pending_head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._reject(431, "REQUEST_HEADERS_TOO_LARGE", HEAD_TOO_LARGE_MESSAGE)
        if self._is_awaiting_data():
            self._start_deadline()

    def on_message_begin(self) -> None:
        """Start counting the head of a request."""
        self._is_in_head, self._pending_head_bytes, self._parsed_head_bytes = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count a part of the URL."""
        self._parsed_head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header and strip the whitespace that the parser leaves around its value."""
        self._parsed_head_bytes += len(name) + len(value) + 4  # ": " and CRLF
        super().on_header(name, value.strip(_WHITESPACE))

    def on_headers_complete(self) -> None:
        """Mark a head that is too large but arrived in one piece; the middleware rejects it."""
        self._is_in_head = False
        self._cancel_deadline()
        if self._parsed_head_bytes > MAX_HEAD_BYTES:
            self.scope[OVERSIZED_HEAD_KEY] = True  # type: ignore[literal-required] # ours
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP, or a head too large for the parser, with an error envelope."""
        if self._parsed_head_bytes > MAX_HEAD_BYTES:
            self._reject(431, "REQUEST_HEADERS_TOO_LARGE", HEAD_TOO_LARGE_MESSAGE)
        else:
            self._reject(400, "BAD_REQUEST", msg)

    def _reject(self, status: int, code: str, message: str) -> None:
        """Send an error response, bypassing the app, and close the connection."""
        error = {"code": code, "message": message}
        body = bytes(failure_response(status, error, new_request_id()).body)
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        closing = b"connection: close\r\n\r\n"
        self.transport.write(head % (_STATUS_LINES[status], len(body)) + closing + body)
        self.transport.close()

    def _is_awaiting_data(self) -> bool:
        """Whether the rest of a head, or of a request already responded to, is missing."""
        if self._is_in_head:
            return True
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
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
