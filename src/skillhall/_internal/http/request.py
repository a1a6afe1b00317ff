"""HTTP requests: headers, query and a body with size and time limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from skillhall._internal.http.http_error import ClientDisconnected, HttpError
from skillhall._internal.strict_json import InvalidJson, parse_request_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import Receive, Scope

# Keys in the ASGI scope.
REQUEST_ID_KEY = "skillhall.request_id"
HEADERS_KEY = "skillhall.headers"  # headers by name; the last of repeated ones
ROUTE_KEY = "skillhall.route"  # the route template, for metrics
OVERSIZED_HEAD_KEY = "skillhall.oversized"  # set if the request head is too large
HEAD_REQUEST_KEY = "skillhall.head"  # set if the request method was HEAD

MAX_HEAD_BYTES = 65_536  # request line and headers
HEAD_TOO_LARGE_MESSAGE = f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes"
MAX_JSON_BYTES = 1 << 20
_BODY_TIMEOUT = 20.0  # seconds, plus one for each _MIN_BYTES_PER_SECOND of the body
_MIN_BYTES_PER_SECOND = 64 * 1024
# Most clients read the response only after they have sent the body.
_MAX_DISCARDED_BYTES = 32 << 20
_DISCARD_TIMEOUT = 2.0


class HttpRequest:
    """A request. Its body is read on demand, and only once."""

    __slots__ = ("_receive", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive

    @property
    def request_id(self) -> str:
        """Return the id of the request in logs and responses."""
        return str(self.scope[REQUEST_ID_KEY])

    def header(self, name: bytes) -> bytes | None:
        """Return the header with this lowercase name."""
        value: bytes | None = self.scope[HEADERS_KEY].get(name)
        return value

    def read_query(self, names: Sequence[str], allow_empty: Sequence[str] = ()) -> dict[str, str]:
        """Return the named parameters of the query. Raises: HttpError if empty or repeated.

        Empty parameters in `allow_empty` count as absent.
        """
        raw = self.scope["query_string"]
        if not raw:
            return {}
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise HttpError("invalid_argument", "the query is not UTF-8") from None
        values: dict[str, str] = {}
        for name, value in pairs:
            if name not in names:
                continue
            if name in values:
                raise HttpError("invalid_argument", f"duplicate parameter {name!r}")
            if not value.strip() and name in allow_empty:
                continue
            if not value.strip():
                raise HttpError("invalid_argument", f"the parameter {name!r} is empty")
            values[name] = value
        return values

    def has_body(self) -> bool:
        """Whether the headers announce a body."""
        headers = self.scope[HEADERS_KEY]
        return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers

    async def body(self, limit: int) -> bytes:
        """Return the complete body.

        Raises: HttpError if it is too large or too slow, ClientDisconnected.
        """
        chunks: list[bytes] = []
        await self.stream(limit, chunks.append)
        return b"".join(chunks)

    async def stream(self, limit: int, on_chunk: Callable[[bytes], object]) -> None:
        """Pass the chunks of the body to `on_chunk`, up to the limit.

        Raises: as `body`, and what `on_chunk` raises.
        """
        if not self.has_body():
            return
        text = self.header(b"content-length") or b"0"
        length = int(text) if text.isdigit() else None
        if length is None or length > limit:
            is_small = length is not None and length <= _MAX_DISCARDED_BYTES
            # A client that expects "100 Continue" has not sent the body yet.
            if is_small and self.header(b"expect") is None:
                await self._discard_body(_MAX_DISCARDED_BYTES)
            raise _too_large_error(limit)
        timeout = _BODY_TIMEOUT + (length or limit) / _MIN_BYTES_PER_SECOND
        try:
            async with asyncio.timeout(timeout):
                await self._read_body(limit, on_chunk)
        except TimeoutError:
            raise HttpError("request_timeout", "timed out reading the request body") from None

    async def json(self, limit: int = MAX_JSON_BYTES, *, empty: object = None) -> object:
        """Return the JSON body, or `empty` without one. Raises: HttpError, ClientDisconnected."""
        body = await self.body(limit)
        if not body:
            return empty
        kind = (self.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind != b"application/json" or self.header(b"content-encoding"):
            raise HttpError("unsupported_media_type", "the body must be sent as application/json")
        return parse_body(body)

    async def _read_body(self, limit: int, on_chunk: Callable[[bytes], object]) -> None:
        size, more = 0, True
        while more:
            chunk, more = await self._read_chunk()
            size += len(chunk)
            try:
                if size > limit:
                    raise _too_large_error(limit)
                on_chunk(chunk)
            except HttpError:
                await self._discard_body(_MAX_DISCARDED_BYTES if more else 0)
                raise

    async def _read_chunk(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        return message.get("body", b""), message.get("more_body", False)

    async def _discard_body(self, remaining: int) -> None:
        """Read and drop the rest of the body for a while, so that the client gets the error."""
        try:
            async with asyncio.timeout(_DISCARD_TIMEOUT):
                while remaining > 0:
                    chunk, more = await self._read_chunk()
                    remaining -= len(chunk)
                    if not more:
                        return
        except TimeoutError:
            return


def _too_large_error(limit: int) -> HttpError:
    return HttpError("too_large", f"the request body is larger than {limit} bytes")


def parse_body(body: bytes) -> object:
    """Parse a JSON body. Raises: HttpError."""
    try:
        return parse_request_json(body)
    except InvalidJson as error:
        raise HttpError("invalid_argument", str(error)) from None
