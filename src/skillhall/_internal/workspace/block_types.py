"""The thirteen types of blocks, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.storage.records import Zone

if TYPE_CHECKING:
    from collections.abc import Mapping

SKILL_TYPE = "skill"


class BlockType(NamedTuple):
    """What every block of one type has in common."""

    id: str
    label: str
    zone: Zone  # where a new one goes
    icon: str
    colour: str  # as CSS writes it


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
BLOCK_TYPES: Mapping[str, BlockType] = {one.id: one for one in _TYPES}
