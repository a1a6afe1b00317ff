"""Long lists, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE, MOST = 100, 1000  # things on a page


def page_limit(asked: Mapping[str, str]) -> int:
    """How many are asked for at most. Raises: Refused."""
    text = asked.get("limit", str(PAGE))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST:
        raise Refused("invalid_argument", f"limit is a number from 1 to {MOST}")
    return int(text)
