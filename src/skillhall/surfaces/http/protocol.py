"""Connections whose requests must come in time and within bounds; uvicorn itself sets none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

LARGEST_HEAD = 65_536  # bytes of the request line and all headers
_PATIENCE = 20.0  # seconds until they are there
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when the head of a request is too large or too slow."""

    _in_head = False
    _head = 0  # bytes of a head that is not whole yet
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; count what belongs to a head."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > LARGEST_HEAD and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
        if self._is_waiting():
            self._start_clock()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._in_head = False
        self._stop_clock()
        super().on_headers_complete()

    def _is_waiting(self) -> bool:
        """For the rest of a head, or for the rest of a request that is answered already."""
        if self._in_head:
            return True
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        if cycle is None or not cycle.response_complete:
            return False
        return self.timeout_keep_alive_task is None

    def _start_clock(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_PATIENCE, self.transport.close)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
