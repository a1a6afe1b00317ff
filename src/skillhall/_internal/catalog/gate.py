"""The gate between the skills that were found and the text that models get.

Prompts, tools, MCP and chats get a skill's text and files only as a `ClearedSkill`, and only this
module makes one. Mypy finds each path that forgets the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType, cast

from skillhall._internal.catalog.catalog import CatalogSkill

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A type only for mypy: a second object for each of 60,000 skills would take 10 MB.
ClearedSkill = NewType("ClearedSkill", CatalogSkill)


def clear_all(skills: Iterable[CatalogSkill]) -> Sequence[ClearedSkill]:
    """Clear skills that need no approval: of a server, or in folders that the caller named."""
    return cast("Sequence[ClearedSkill]", [*skills])
