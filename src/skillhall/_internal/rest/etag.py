"""ETags: conditional responses and version checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers

NO_CACHE_HEADER = (b"cache-control", b"no-cache")
_VERSION_ETAG = re.compile(rb'(?:W/)?"([0-9]{1,18})"')
_UNKNOWN_VERSION = -1  # for an ETag that this server never sends


def etag_matches(if_none_match: bytes | None, etag: bytes) -> bool:
    """Whether If-None-Match contains this ETag. Weak and strong ones are equal."""
    if if_none_match is None:
        return False
    if if_none_match == etag:
        return True
    opaque = etag.removeprefix(b"W/")
    tags = [tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")]
    return opaque in tags or b"*" in tags


def etag_response(
    request: HttpRequest, headers: Headers, read: Callable[[], bytes]
) -> ByteResponse:
    """Return the bytes with an ETag of their digest, or 304 if the client has them.

    Blocks, so call it in a worker thread. Raises: what `read` raises.
    """
    data = read()
    etag = f'"{sha256_hex(data)}"'.encode()
    cache_headers = (NO_CACHE_HEADER, (b"etag", etag))
    if etag_matches(request.header(b"if-none-match"), etag):
        return ByteResponse(304, cache_headers)
    return ByteResponse(200, (*headers, *cache_headers), (data,))


def require_version(request: HttpRequest) -> int:
    """Return the version in If-Match. Raises: HttpError if the header is missing."""
    version = read_version(request)
    if version is None:
        message = "If-Match is missing: send the ETag of the version to change"
        raise HttpError("precondition_required", message)
    return version


def read_version(request: HttpRequest) -> int | None:
    """Return the version in If-Match, or None without the header."""
    header = request.header(b"if-match")
    if header is None:
        return None
    match = _VERSION_ETAG.fullmatch(header.strip())
    return _UNKNOWN_VERSION if match is None else int(match[1])
