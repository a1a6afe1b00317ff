"""Listing of local skills: a fixed paragraph, then one line per skill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skillhall._internal.policy.visibility import filter_visible
from skillhall._internal.render.escape import to_single_line

if TYPE_CHECKING:
    from collections.abc import Iterable

INTRODUCTION = (
    "You have access to the following skills. Each has an id and a short description. "
    "To use a skill, call the ReadFile tool with the path to its SKILL.md or other files under "
    "that skill’s directory (path is relative to the run directory; ReadFile can read any file "
    "under it with allowed extensions)."
)


class LocalListingEntry(Protocol):
    """The properties of a skill that the listing shows."""

    @property
    def id(self) -> str:
        """The name of its folder."""

    @property
    def name(self) -> str:
        """Its display name."""

    @property
    def description(self) -> str:
        """What it does and when to use it."""


def render_local(skills: Iterable[LocalListingEntry]) -> str:
    """Render skills in order, without hidden ones; "" if none are left."""
    lines = [_render_line(skill) for skill in filter_visible(skills)]
    return "\n".join((INTRODUCTION, *lines)) if lines else ""


def _render_line(skill: LocalListingEntry) -> str:
    identity, name, description = map(to_single_line, (skill.id, skill.name, skill.description))
    return f"- id: {identity}; name: {name}; description: {description}"
