"""Skills as a short Markdown list, for a README or an AGENTS.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.policy.selection import visible
from skillhall._internal.render.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.render.listing import Entry

# What means something in the middle of a line; list signs and headings only do at its start.
_INLINE = re.compile(r"[\\`*_~\[\]<>&|]")
_BACKTICKS = re.compile("`+")


def render_markdown(entries: Iterable[Entry]) -> str:
    """One list item for each skill in their order, hidden ones left out; "" if there are none."""
    return "\n".join(_item(entry) for entry in visible(entries))


def _item(entry: Entry) -> str:
    name, description = _plain(entry.name), _plain(entry.description)
    return f"- **{name}**: {description} ({_code(entry.location)})"


def _plain(text: str) -> str:
    """`text` so that Markdown shows it as it is."""
    return _INLINE.sub(r"\\\g<0>", one_line(text))


def _code(text: str) -> str:
    """`text` between more backticks than it holds in a row; nothing in it needs escaping."""
    text = one_line(text)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"
