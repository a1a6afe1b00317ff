"""Request bodies with limits on size and time, and our keys in the ASGI scope.

Starlette's `Request.body()` and `Request.form()` have no such limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from starlette.requests import Request

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.strict_json import InvalidJson, parse_request_json

REQUEST_ID_KEY = "skillhall.request_id"
HEADERS_KEY = "skillhall.headers"  # headers by name; the last one if repeated
ROUTE_KEY = "skillhall.route"  # the route template, for metrics
OVERSIZED_HEAD_KEY = "skillhall.oversized"  # set if the request head is too large
CREDENTIAL_KEY = "skillhall.credential"  # of the request; missing if none is required
TOKEN_ID_KEY = "skillhall.token"  # noqa: S105 - id of the access token or user of the request
REFUSED_KEY = "skillhall.refused"  # the action that the credential does not allow
HEAD_REQUEST_KEY = "skillhall.head"  # set if the request method was HEAD

MAX_HEAD_BYTES = 65_536  # request line and headers
HEAD_TOO_LARGE_MESSAGE = f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes"
MAX_JSON_BYTES = 1 << 20
_BODY_TIMEOUT = 20.0  # seconds, plus one for each _MIN_BYTES_PER_SECOND of the body
_MIN_BYTES_PER_SECOND = 64 * 1024
# Most clients read the response only after they have sent the body, so after an error the rest of
# the body is discarded, within these limits.
_MAX_DISCARDED_BYTES = 32 << 20
_DISCARD_TIMEOUT = 2.0  # seconds


def has_body(request: Request) -> bool:
    """Whether the headers announce a body."""
    headers = request.headers
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def content_type(request: Request) -> str:
    """Return the media type of the body in lowercase, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, limit: int) -> bytes:
    """Return the complete body.

    Raises: HttpError if it is too large or too slow, ClientDisconnect.
    """
    chunks: list[bytes] = []
    await stream_body(request, limit, chunks.append)
    return b"".join(chunks)


async def stream_body(request: Request, limit: int, on_chunk: Callable[[bytes], object]) -> None:
    """Pass the chunks of the body to `on_chunk`, up to the limit.

    Raises: same as `read_body`, and errors from `on_chunk`.
    """
    if not has_body(request):
        return
    text, chunks = request.headers.get("content-length", "0"), request.stream()
    length = int(text) if text.isascii() and text.isdigit() else None
    if length is None or length > limit:
        # A client that expects "100 Continue" has not sent the body yet.
        is_sent = "expect" not in request.headers
        if is_sent and length is not None and length <= _MAX_DISCARDED_BYTES:
            await _discard(chunks)
        raise _too_large_error(limit)
    size = 0
    try:
        async with asyncio.timeout(_BODY_TIMEOUT + (length or limit) / _MIN_BYTES_PER_SECOND):
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise _too_large_error(limit)
                on_chunk(chunk)
    except TimeoutError:
        raise HttpError("request_timeout", "timed out reading the request body") from None
    except HttpError:
        await _discard(chunks)
        raise


async def read_json(request: Request, limit: int = MAX_JSON_BYTES) -> object:
    """Return the JSON body; {} if it is empty. Raises: HttpError, ClientDisconnect."""
    body = await read_body(request, limit)
    if not body:
        return {}
    if content_type(request) != "application/json" or request.headers.get("content-encoding"):
        raise HttpError("unsupported_media_type", "the body must be uncompressed application/json")
    return parse_json(body)


def parse_json(body: bytes) -> object:
    """Parse a JSON body. Raises: HttpError."""
    try:
        return parse_request_json(body)
    except InvalidJson as error:
        raise HttpError("invalid_argument", str(error)) from None


async def _discard(chunks: AsyncGenerator[bytes]) -> None:
    """Discard the rest of the body for a while, so that the client gets the error."""
    remaining = _MAX_DISCARDED_BYTES
    try:
        async with asyncio.timeout(_DISCARD_TIMEOUT):
            async for chunk in chunks:
                remaining -= len(chunk)
                if remaining <= 0:
                    return
    except TimeoutError:
        return


def _too_large_error(limit: int) -> HttpError:
    return HttpError("too_large", f"the request body is larger than {limit} bytes")


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client with this Accept-Encoding accepts gzip."""
    for item in accept_encoding.lower().split(","):
        coding, _, weight = item.replace(" ", "").partition(";")
        if coding == "gzip":
            return weight.rstrip("0") not in ("q=", "q=.", "q=0.")
    return False
