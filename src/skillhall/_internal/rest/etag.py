"""ETags: what an answer is known by, and whether a client has it already."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.response import Answer
from skillhall._internal.skill.bundle import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Headers

REVALIDATED = (b"cache-control", b"no-cache")
_VERSION = re.compile(rb'(?:W/)?"([0-9]{1,18})"')
_NO_VERSION = -1  # what a tag means that nothing of ours ever had


def matches(wanted: bytes | None, tag: bytes) -> bool:
    """Whether the tags in If-None-Match hold this one; weak and strong ones count alike."""
    if wanted is None:
        return False
    if wanted == tag:
        return True
    opaque = tag.removeprefix(b"W/")
    given = [one.strip().removeprefix(b"W/") for one in wanted.split(b",")]
    return opaque in given or b"*" in given


def tagged(exchange: Exchange, headers: Headers, read: Callable[[], bytes]) -> Answer:
    """The bytes, known by their digest; nothing if the client has them. Raises: what `read` does.

    It reads and hashes, which is no work for the event loop.
    """
    data = read()
    known = (REVALIDATED, (b"etag", f'"{sha256_of(data)}"'.encode()))
    if matches(exchange.header(b"if-none-match"), known[1][1]):
        return Answer(304, known)
    return Answer(200, (*headers, *known), (data,))


def version_in(exchange: Exchange) -> int:
    """The version that a change is made against, by If-Match. Raises: Refused without one."""
    version = optional_version(exchange)
    if version is None:
        message = "say which version you change: send its ETag in If-Match"
        raise Refused("precondition_required", message)
    return version


def optional_version(exchange: Exchange) -> int | None:
    """The same where a change may be made against whatever is there."""
    given = exchange.header(b"if-match")
    if given is None:
        return None
    match = _VERSION.fullmatch(given.strip())
    return _NO_VERSION if match is None else int(match[1])
