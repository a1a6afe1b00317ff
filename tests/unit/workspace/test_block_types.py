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


def test_there_are_thirteen_types_and_each_is_told_apart() -> None:
    assert list(BLOCK_TYPES) == NAMES
    for field in ("label", "icon", "colour"):
        assert len({getattr(one, field) for one in BLOCK_TYPES.values()}) == 13


def test_a_skill_goes_into_the_stable_zone() -> None:
    assert BLOCK_TYPES["skill"].zone is Zone.STABLE
