"""Where a list goes on, and how a wrong address is repeated."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from skillhall._internal.mcp.errors import invalid
from skillhall._internal.render.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

AFTER = "after:"  # what our cursors begin with
_SHOWN = 200  # characters of a wrong address that an error repeats


def position(names: Sequence[str], cursor: str | None) -> int:
    """Where a list goes on after a cursor, whether or not that name is still there.

    Raises: MCPError for a cursor that is none of ours.
    """
    if cursor is None:
        return 0
    if not cursor.startswith(AFTER):
        raise invalid("the cursor is none of this server's", "invalid_argument")
    return bisect_right(names, cursor.removeprefix(AFTER))


def shown(uri: str) -> str:
    """An address as an error repeats it."""
    return one_line(uri[:_SHOWN])
