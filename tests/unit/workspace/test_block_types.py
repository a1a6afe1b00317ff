from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES

NAMES = [
    "system_prompt",
    "note",
    "code",
    "guideline",
    "template",
    "reference",
    "document",
    "user_message",
    "assistant_message",
    "instruction",
    "persona",
    "framework",
    "skill",
]


def test_block_types_of_existing_sessions_are_known() -> None:
    assert set(NAMES) <= set(BLOCK_TYPES)


def test_block_types_have_distinct_labels_icons_and_colors() -> None:
    for field in ("label", "icon", "colour", "drawing"):
        assert len({getattr(row, field) for row in BLOCK_TYPES.values()}) == len(BLOCK_TYPES)


def test_skill_blocks_default_to_the_stable_zone() -> None:
    assert BLOCK_TYPES["skill"].zone is Zone.STABLE
