"""Where and how a command searches for skills."""

from __future__ import annotations

from typing import NamedTuple


class SearchOptions(NamedTuple):
    """Where and how a command searches for skills."""

    roots: tuple[str, ...] = ()
    profile: str = "lenient"
    depth: int | None = None  # `None`: the profile's depth
    follow_links: bool = False
    no_index: bool = False
