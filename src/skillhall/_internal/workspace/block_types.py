"""Table of the block types.

To add a type, add a row here and its name to every language file below `web/texts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Zone

if TYPE_CHECKING:
    from collections.abc import Mapping

SKILL_TYPE = "skill"


class BlockType(NamedTuple):
    """A block type and how it is shown."""

    id: str
    zone: Zone  # default for new blocks
    icon: str  # a character, for programs and terminals
    colour: str  # CSS color
    drawing: str  # SVG path of the icon on pages, 16 units wide and high

    @property
    def label(self) -> str:
        """The English name. Pages use the translated text `type.<id>` instead."""
        return self.id.replace("_", " ").capitalize()


_GEAR = (
    "M5.8 8a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2"
    "M3.6 3.6L5 5M11 11l1.4 1.4M3.6 12.4L5 11M11 5l1.4-1.4"
)
_PENCIL = "M3 13l.6-2.8L11 2.8l2.2 2.2-7.4 7.4z"
_BRACKETS = "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5"
_CHECKED_BOX = "M2.8 2.8h10.4v10.4H2.8zM5.2 8l2 2 3.6-4"
_LAYOUT = "M2.8 2.8h10.4v10.4H2.8zM2.8 6.4h10.4M6.6 6.4v6.8"
_BOOKMARK = "M4.5 2.2h7v11.6L8 10.9l-3.5 2.9z"
_PAGE = "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3M6 8.2h4M6 10.8h4"
_BUBBLE = "M2.2 3h11.6v8H8l-3 2.8V11H2.2z"
_BUBBLE_WITH_DOTS = f"{_BUBBLE}M5.4 7h.1M8 7h.1M10.6 7h.1"
_ARROW = "M2.5 8h10M9 4.2L12.8 8 9 11.8"
_PERSON = (
    "M5.4 5.4a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0"
    "M2.8 13.6c.6-2.8 2.6-4.2 5.2-4.2s4.6 1.4 5.2 4.2"
)
_GRID = "M2.6 2.6h4.4v4.4H2.6zM9 2.6h4.4v4.4H9zM2.6 9h4.4v4.4H2.6zM9 9h4.4v4.4H9z"
_BOLT = "M9 1.6L3.4 9h3.8L6.6 14.4 12.6 6.6H8.6z"

_TYPES = (
    BlockType("system_prompt", Zone.PERMANENT, "⚙", "#6b4fbb", _GEAR),
    BlockType("note", Zone.WORKING, "✎", "#a16207", _PENCIL),
    BlockType("code", Zone.WORKING, "⟨⟩", "#0f766e", _BRACKETS),
    BlockType("guideline", Zone.PERMANENT, "☑", "#15803d", _CHECKED_BOX),
    BlockType("template", Zone.STABLE, "▤", "#4d7c0f", _LAYOUT),
    BlockType("reference", Zone.STABLE, "🔖", "#0369a1", _BOOKMARK),
    BlockType("document", Zone.STABLE, "📄", "#475569", _PAGE),
    BlockType("user_message", Zone.WORKING, "🗨", "#1d4ed8", _BUBBLE),
    BlockType("assistant_message", Zone.WORKING, "🗪", "#7c3aed", _BUBBLE_WITH_DOTS),
    BlockType("instruction", Zone.PERMANENT, "➤", "#b91c1c", _ARROW),
    BlockType("persona", Zone.PERMANENT, "☺", "#be185d", _PERSON),
    BlockType("framework", Zone.STABLE, "▦", "#c2410c", _GRID),
    BlockType(SKILL_TYPE, Zone.STABLE, "⚡", "#854d0e", _BOLT),
)
BLOCK_TYPES: Mapping[str, BlockType] = {row.id: row for row in _TYPES}
