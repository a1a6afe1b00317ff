"""Validation of names, texts, zones, block types and budgets."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import MAX_BUDGET, BlockContent, SessionBudgets, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall.errors import FieldRefused, TextRefused, TooLarge

if TYPE_CHECKING:
    from skillhall._internal.storage.records import SkillOrigin

MAX_NAME = 200  # characters
MAX_DESCRIPTION = 2_000  # characters
MAX_CONTENT = 1 << 20  # bytes; the same limit as for a SKILL.md
MAX_BLOCKS = 20_000  # per session
_CONTROL = ("Cc", "Zl", "Zp")  # Unicode categories: control characters, line breaks


def validate_name(field: str, text: str) -> str:
    """Return the trimmed name, if it is a single line and not empty.

    Raises: TextRefused, FieldRefused, TooLarge.
    """
    name = _check_storable(field, text).strip()
    if any(unicodedata.category(c) in _CONTROL for c in name):
        raise TextRefused(field, "contains control characters or line breaks")
    if not name:
        raise FieldRefused(field, "must not be empty")
    if len(name) > MAX_NAME:
        raise TooLarge(field, MAX_NAME, "characters")
    return name


def validate_description(text: str) -> str:
    """Return the trimmed description of a template. Raises: TextRefused, TooLarge."""
    description = _check_storable("description", text).strip()
    if len(description) > MAX_DESCRIPTION:
        raise TooLarge("description", MAX_DESCRIPTION, "characters")
    return description


def parse_zone(text: str) -> Zone:
    """Return the zone with this name, ignoring case. Raises: FieldRefused."""
    try:
        return Zone(text.upper())
    except ValueError:
        hint = f"use one of: {', '.join(Zone)}"
        raise FieldRefused("zone", f"unknown zone {text[:MAX_NAME]!r}", hint) from None


def validate_block_type(text: str) -> str:
    """Return `text` if it is the id of a block type. Raises: FieldRefused."""
    if text not in BLOCK_TYPES:
        known = ", ".join(BLOCK_TYPES)
        raise FieldRefused("type", f"unknown type {text[:MAX_NAME]!r}", f"use one of: {known}")
    return text


def validate_budgets(budgets: SessionBudgets) -> SessionBudgets:
    """Return the budgets if they are in range. Raises: FieldRefused."""
    for value in (budgets.permanent, budgets.stable, budgets.working, budgets.total):
        if value is not None and not 0 <= value <= MAX_BUDGET:
            raise FieldRefused("budgets", f"must be between 0 and {MAX_BUDGET} tokens, not {value}")
    return budgets


def build_content(
    kind: str, zone: Zone, text: str, skill: SkillOrigin | None = None
) -> BlockContent:
    """Return block content with its token count. Raises: TextRefused, TooLarge."""
    _check_storable("content", text)
    if len(text.encode("utf-8")) > MAX_CONTENT:
        raise TooLarge("content", MAX_CONTENT)
    if skill is not None:
        for part in (skill.name, skill.description, skill.source_type, skill.source_ref):
            _check_storable("metadata", part)
    return BlockContent(kind, zone, text, estimate_tokens(text), skill)


def _check_storable(field: str, text: str) -> str:
    """Return the text if it can be stored as UTF-8. Raises: TextRefused."""
    # PostgreSQL rejects NUL in text columns.
    if "\0" in text:
        raise TextRefused(field, "contains NUL characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TextRefused(field, "contains unpaired surrogates") from None
    return text
