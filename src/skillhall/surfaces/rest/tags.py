"""ETags: what an answer is known by, and whether a client has it already."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall.surfaces.http.refusal import Refused

if TYPE_CHECKING:
    from skillhall.surfaces.http.exchange import Exchange

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
