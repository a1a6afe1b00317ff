"""Table of the thirteen block types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Zone

if TYPE_CHECKING:
    from collections.abc import Mapping

SKILL_TYPE = "skill"


class BlockType(NamedTuple):
    """A block type and how it is shown."""

    id: str
    label: str
    zone: Zone  # default for new blocks
    icon: str
    colour: str  # CSS color


_TYPES = (
    BlockType("system_prompt", "System prompt", Zone.PERMANENT, "⚙", "#6b4fbb"),
    BlockType("note", "Note", Zone.WORKING, "✎", "#a16207"),
    BlockType("code", "Code", Zone.WORKING, "⟨⟩", "#0f766e"),
    BlockType("guideline", "Guideline", Zone.PERMANENT, "☑", "#15803d"),
    BlockType("template", "Template", Zone.STABLE, "▤", "#4d7c0f"),
    BlockType("reference", "Reference", Zone.STABLE, "🔖", "#0369a1"),
    BlockType("document", "Document", Zone.STABLE, "📄", "#475569"),
    BlockType("user_message", "User message", Zone.WORKING, "🗨", "#1d4ed8"),
    BlockType("assistant_message", "Assistant message", Zone.WORKING, "🗪", "#7c3aed"),
    BlockType("instruction", "Instruction", Zone.PERMANENT, "➤", "#b91c1c"),
    BlockType("persona", "Persona", Zone.PERMANENT, "☺", "#be185d"),
    BlockType("framework", "Framework", Zone.STABLE, "▦", "#c2410c"),
    BlockType(SKILL_TYPE, "Skill", Zone.STABLE, "⚡", "#854d0e"),
)
BLOCK_TYPES: Mapping[str, BlockType] = {row.id: row for row in _TYPES}
