"""ETags: what an answer is known by, and whether a client has it already."""

from __future__ import annotations


def matches(wanted: bytes | None, tag: bytes) -> bool:
    """Whether the tags in If-None-Match hold this one; weak and strong ones count alike."""
    if wanted is None:
        return False
    if wanted == tag:
        return True
    opaque = tag.removeprefix(b"W/")
    given = [one.strip().removeprefix(b"W/") for one in wanted.split(b",")]
    return opaque in given or b"*" in given
