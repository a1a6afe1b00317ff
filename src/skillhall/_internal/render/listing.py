"""Listing: the `<available_skills>` block of a system prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skillhall._internal.policy.visibility import filter_visible
from skillhall._internal.render.escape import escape_fields

if TYPE_CHECKING:
    from collections.abc import Iterable


class ListingEntry(Protocol):
    """The properties of a skill that a listing shows."""

    @property
    def name(self) -> str:
        """The name that the model uses."""

    @property
    def description(self) -> str:
        """What it does and when to use it."""

    @property
    def location(self) -> str:
        """The absolute path of its SKILL.md."""


def render_listing(entries: Iterable[ListingEntry]) -> str:
    """Render entries or a catalog in order, without hidden skills; "" if empty."""
    elements = [render_listing_entry(entry) for entry in filter_visible(entries)]
    if not elements:
        return ""
    return "\n".join(("<available_skills>", *elements, "</available_skills>"))


def render_listing_entry(entry: ListingEntry) -> str:
    """Render the element of one skill."""
    name, description, location = escape_fields(entry.name, entry.description, entry.location)
    return (
        "  <skill>\n"
        f"    <name>{name}</name>\n"
        f"    <description>{description}</description>\n"
        f"    <location>{location}</location>\n"
        "  </skill>"
    )
