"""Markdown list of skills, for a README or an AGENTS.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.policy.visibility import filter_visible
from skillhall._internal.render.escape import to_single_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.render.listing import ListingEntry

# Characters with a meaning inside a line. List and heading markers only matter at its start.
_INLINE = re.compile(r"[\\`*_~\[\]<>&|]")
_BACKTICKS = re.compile("`+")


def render_markdown(entries: Iterable[ListingEntry]) -> str:
    """Render a list of skills in order, without hidden ones; "" if none are left."""
    return "\n".join(_render_item(entry) for entry in filter_visible(entries))


def _render_item(entry: ListingEntry) -> str:
    name, description = _escape_markdown(entry.name), _escape_markdown(entry.description)
    return f"- **{name}**: {description} ({_render_code_span(entry.location)})"


def _escape_markdown(text: str) -> str:
    return _INLINE.sub(r"\\\g<0>", to_single_line(text))


def _render_code_span(text: str) -> str:
    """Put `text` between more backticks than it has in a row."""
    text = to_single_line(text)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"
