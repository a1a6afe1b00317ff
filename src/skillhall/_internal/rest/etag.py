"""ETags: what an answer is known by, and whether a client has it already."""

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
_UNKNOWN_VERSION = -1  # what a tag means that nothing of ours ever had


def etag_matches(if_none_match: bytes | None, etag: bytes) -> bool:
    """Whether the tags in If-None-Match hold this one; weak and strong ones count alike."""
    if if_none_match is None:
        return False
    if if_none_match == etag:
        return True
    opaque = etag.removeprefix(b"W/")
    given = [one.strip().removeprefix(b"W/") for one in if_none_match.split(b",")]
    return opaque in given or b"*" in given


def etag_response(
    request: HttpRequest, headers: Headers, read: Callable[[], bytes]
) -> ByteResponse:
    """The bytes, known by their digest; nothing if the client has them. Raises: what `read` does.

    It reads and hashes, which is no work for the event loop.
    """
    data = read()
    known = (NO_CACHE_HEADER, (b"etag", f'"{sha256_hex(data)}"'.encode()))
    if etag_matches(request.header(b"if-none-match"), known[1][1]):
        return ByteResponse(304, known)
    return ByteResponse(200, (*headers, *known), (data,))


def require_version(request: HttpRequest) -> int:
    """The version that a change is made against, by If-Match. Raises: Refused without one."""
    version = read_version(request)
    if version is None:
        message = "say which version you change: send its ETag in If-Match"
        raise HttpError("precondition_required", message)
    return version


def read_version(request: HttpRequest) -> int | None:
    """The same where a change may be made against whatever is there."""
    given = request.header(b"if-match")
    if given is None:
        return None
    match = _VERSION_ETAG.fullmatch(given.strip())
    return _UNKNOWN_VERSION if match is None else int(match[1])
