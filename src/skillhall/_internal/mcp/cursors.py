"""Where a list goes on, and how a wrong address is repeated."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.render.escape import to_single_line

if TYPE_CHECKING:
    from collections.abc import Sequence

CURSOR_PREFIX = "after:"  # what our cursors begin with
_MAX_QUOTED = 200  # characters of a wrong address that an error repeats


def find_start(names: Sequence[str], cursor: str | None) -> int:
    """Where a list goes on after a cursor, whether or not that name is still there.

    Raises: MCPError for a cursor that is none of ours.
    """
    if cursor is None:
        return 0
    if not cursor.startswith(CURSOR_PREFIX):
        raise build_invalid_params("the cursor is none of this server's", "invalid_argument")
    return bisect_right(names, cursor.removeprefix(CURSOR_PREFIX))


def quote_uri(uri: str) -> str:
    """An address as an error repeats it."""
    return to_single_line(uri[:_MAX_QUOTED])
