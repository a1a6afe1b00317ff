"""One request as the surfaces read it: headers, query and a body that is bounded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from skillhall._internal.http.http_error import ClientDisconnected, HttpError
from skillhall._internal.strict_json import InvalidJson, parse_request_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import Receive, Scope

REQUEST_ID_KEY = "skillhall.request_id"  # where the id of a request stands in its scope
HEADERS_KEY = "skillhall.headers"  # where they stand by name; of one that is repeated, the last
ROUTE_KEY = "skillhall.route"  # where the route's template stands, for the metrics

OVERSIZED_HEAD_KEY = (
    "skillhall.oversized"  # the key in a scope that marks a request head as too large
)
HEAD_REQUEST_KEY = "skillhall.head"  # where it stands that nobody reads the body of the answer

MAX_HEAD_BYTES = 65_536  # bytes of the request line and all headers
HEAD_TOO_LARGE_MESSAGE = f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes"
MAX_JSON_BYTES = 1 << 20
_BODY_TIMEOUT = 20.0  # seconds that a small body may take
_MIN_BYTES_PER_SECOND = 64 * 1024  # bytes in each second that a large one may take besides
_MAX_DISCARDED_BYTES = (
    32 << 20
)  # bytes of an oversized body that are read and dropped, so that its client sees the response
_DISCARD_TIMEOUT = 2.0


class HttpRequest:
    """One request; its body is read when it is asked for, once."""

    __slots__ = ("_receive", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive

    @property
    def request_id(self) -> str:
        """The id that logs and answers carry."""
        return str(self.scope[REQUEST_ID_KEY])

    def header(self, name: bytes) -> bytes | None:
        """The header of that name, which is in small letters."""
        found: bytes | None = self.scope[HEADERS_KEY].get(name)
        return found

    def read_query(self, names: Sequence[str], allow_empty: Sequence[str] = ()) -> dict[str, str]:
        """Those parameters that are there. Raises: Refused for an empty or repeated one.

        Those that may be empty count as absent then.
        """
        raw = self.scope["query_string"]
        if not raw:
            return {}
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise HttpError("invalid_argument", "the query is not UTF-8") from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in names:
                continue
            if name in found:
                raise HttpError("invalid_argument", f"the parameter {name!r} is given twice")
            if not value.strip() and name in allow_empty:
                continue
            if not value.strip():
                raise HttpError("invalid_argument", f"the parameter {name!r} is empty")
            found[name] = value
        return found

    def has_body(self) -> bool:
        """Whether a body follows, by what the headers say."""
        headers = self.scope[HEADERS_KEY]
        return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises: Refused if it is too large or too slow, ClientGone."""
        pieces: list[bytes] = []
        await self.stream(limit, pieces.append)
        return b"".join(pieces)

    async def stream(self, limit: int, on_chunk: Callable[[bytes], object]) -> None:
        """Give every piece of the body away as it comes. Raises: as `body`, and what `take` does.

        Nothing of what a piece beyond the limit holds is given.
        """
        if not self.has_body():
            return
        stated = self.header(b"content-length") or b"0"
        if not stated.isdigit() or int(stated) > limit:
            if (
                stated.isdigit()
                and int(stated) <= _MAX_DISCARDED_BYTES
                and self.header(b"expect") is None
            ):
                await self._discard_body(_MAX_DISCARDED_BYTES)
            raise _too_large_error(limit)
        try:
            async with asyncio.timeout(
                _BODY_TIMEOUT + (int(stated) or limit) / _MIN_BYTES_PER_SECOND
            ):
                await self._read_body(limit, on_chunk)
        except TimeoutError:
            raise HttpError("request_timeout", "the body took too long") from None

    async def json(self, limit: int = MAX_JSON_BYTES, *, empty: object = None) -> object:
        """The value in the body, or `empty` without a body. Raises: Refused, ClientGone."""
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
            piece, more = await self._read_chunk()
            size += len(piece)
            try:
                if size > limit:
                    raise _too_large_error(limit)
                on_chunk(piece)
            except HttpError:
                await self._discard_body(_MAX_DISCARDED_BYTES if more else 0)
                raise

    async def _read_chunk(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        return message.get("body", b""), message.get("more_body", False)

    async def _discard_body(self, remaining: int) -> None:
        """Read on for a while: who is cut off in mid-sentence does not hear the answer."""
        try:
            async with asyncio.timeout(_DISCARD_TIMEOUT):
                while remaining > 0:
                    piece, more = await self._read_chunk()
                    remaining -= len(piece)
                    if not more:
                        return
        except TimeoutError:
            return


def _too_large_error(limit: int) -> HttpError:
    return HttpError("too_large", f"the body is larger than {limit} bytes")


def parse_body(body: bytes) -> object:
    """The value of a JSON body. Raises: Refused."""
    try:
        return parse_request_json(body)
    except InvalidJson as error:
        raise HttpError("invalid_argument", str(error)) from None
