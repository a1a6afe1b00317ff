"""What a session takes: texts, zones, types and budgets, checked before anything is changed."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import BlockContent, SessionBudgets, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall.errors import FieldRefused, TextRefused, TooLarge

if TYPE_CHECKING:
    from skillhall._internal.storage.records import SkillOrigin

MAX_NAME = 200  # characters
MAX_DESCRIPTION = 2_000  # characters
MAX_CONTENT = 1 << 20  # bytes; as much as a SKILL.md may have
MAX_BLOCKS = 20_000  # of one session
MAX_BUDGET = 1_000_000_000  # tokens
_CONTROL = ("Cc", "Zl", "Zp")


def validate_name(field: str, text: str) -> str:
    """A name: one line, not empty. Raises: TextRefused, FieldRefused, TooLarge."""
    name = _check_storable(field, text).strip()
    if any(unicodedata.category(c) in _CONTROL for c in name):
        raise TextRefused(field, "it holds control characters or line breaks")
    if not name:
        raise FieldRefused(field, "it is empty")
    if len(name) > MAX_NAME:
        raise TooLarge(field, MAX_NAME, "characters")
    return name


def validate_description(text: str) -> str:
    """A few words about a template. Raises: TextRefused, TooLarge."""
    described = _check_storable("description", text).strip()
    if len(described) > MAX_DESCRIPTION:
        raise TooLarge("description", MAX_DESCRIPTION, "characters")
    return described


def parse_zone(text: str) -> Zone:
    """The zone of that name, in any case. Raises: FieldRefused."""
    try:
        return Zone(text.upper())
    except ValueError:
        known = ", ".join(Zone)
        raise FieldRefused("zone", f"there is no zone {text[:MAX_NAME]!r}", known) from None


def validate_block_type(text: str) -> str:
    """The id of a block type. Raises: FieldRefused."""
    if text not in BLOCK_TYPES:
        known = ", ".join(BLOCK_TYPES)
        raise FieldRefused("type", f"there is no type {text[:MAX_NAME]!r}", f"one of: {known}")
    return text


def validate_budgets(budgets: SessionBudgets) -> SessionBudgets:
    """Budgets that can be met. Raises: FieldRefused."""
    for value in (budgets.permanent, budgets.stable, budgets.working, budgets.total):
        if value is not None and not 0 <= value <= MAX_BUDGET:
            raise FieldRefused("budgets", f"a budget is a number from 0 to {MAX_BUDGET}")
    return budgets


def build_content(
    kind: str, zone: Zone, text: str, skill: SkillOrigin | None = None
) -> BlockContent:
    """What a block says, with its tokens. Raises: TextRefused, TooLarge."""
    _check_storable("content", text)
    if len(text.encode("utf-8")) > MAX_CONTENT:
        raise TooLarge("content", MAX_CONTENT)
    if skill is not None:
        for part in (skill.name, skill.description, skill.source_type, skill.source_ref):
            _check_storable("metadata", part)
    return BlockContent(kind, zone, text, estimate_tokens(text), skill)


def _check_storable(field: str, text: str) -> str:
    """The text, if every database and every JSON can hold it. Raises: TextRefused."""
    if "\0" in text:
        raise TextRefused(field, "it holds NUL characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TextRefused(field, "it holds halves of characters") from None
    return text
