"""Cursors of paginated lists."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.render.escape import to_single_line

if TYPE_CHECKING:
    from collections.abc import Sequence

CURSOR_PREFIX = "after:"
_MAX_QUOTED = 200  # characters of a URI in an error message


def find_start(names: Sequence[str], cursor: str | None) -> int:
    """Return the index after the cursor's name, which may be gone by now.

    Raises: MCPError for an invalid cursor.
    """
    if cursor is None:
        return 0
    if not cursor.startswith(CURSOR_PREFIX):
        raise build_invalid_params("invalid cursor", "invalid_argument")
    return bisect_right(names, cursor.removeprefix(CURSOR_PREFIX))


def quote_uri(uri: str) -> str:
    """Return a URI, shortened for an error message."""
    return to_single_line(uri[:_MAX_QUOTED])
