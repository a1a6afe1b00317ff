"""Listings of skills: XML for prompts (with inline bodies), Markdown and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypedDict

from skillhall._internal.policy.visibility import filter_visible
from skillhall._internal.render.escape import (
    escape_closing_tag,
    escape_field,
    escape_fields,
    to_single_line,
)

LOCAL_INTRO = (
    "You have access to the following skills. Each has an id and a short description. "
    "To use a skill, call the ReadFile tool with the path to its SKILL.md or other files under "
    "that skill’s directory (path is relative to the run directory; ReadFile can read any file "
    "under it with allowed extensions)."
)
# Characters with a meaning inside a line. List and heading markers only matter at its start.
_MARKDOWN_INLINE = re.compile(r"[\\`*_~\[\]<>&|]")
_BACKTICKS = re.compile("`+")


class NamedEntry(Protocol):
    """Name and description of a listed skill."""

    @property
    def name(self) -> str:
        """The name that the model uses."""

    @property
    def description(self) -> str:
        """What the skill does and when to use it."""


class ListingEntry(NamedEntry, Protocol):
    """The properties of a skill that most listings show."""

    @property
    def location(self) -> str:
        """The absolute path of the skill's SKILL.md."""


class ListingRow(NamedTuple):
    """A skill in the listing, under the name that the tools use."""

    name: str
    description: str
    location: str


class LocalListingEntry(NamedEntry, Protocol):
    """The properties of a skill that the listing of local skills shows."""

    @property
    def id(self) -> str:
        """The name of the skill's folder."""


class InlineSkill(NamedTuple):
    """A skill whose body is part of the prompt."""

    name: str
    location: str
    directory: str
    body: str


class ListingEntryJson(TypedDict):
    """One skill of a listing, as JSON."""

    name: str
    description: str
    location: str


def render_listing(entries: Iterable[ListingEntry]) -> str:
    """Render `<available_skills>` in order, without hidden skills; "" if empty."""
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


def render_inline(name: str, location: str, directory: str, body: str) -> str:
    """Render the `<skill>` block of one skill; its body cannot close the block."""
    return (
        f'<skill name="{escape_field(name)}" location="{escape_field(location)}">\n'
        f"References are relative to {escape_field(directory)}.\n"
        "\n"
        f"{escape_closing_tag(body, 'skill')}\n"
        "</skill>"
    )


def render_instructions(listed: Iterable[ListingEntry], inlined: Iterable[InlineSkill]) -> str:
    """Render the listing and the inline blocks; "" if nothing is selected."""
    blocks = [render_listing(listed), *(render_inline(*skill) for skill in inlined)]
    return "\n\n".join(block for block in blocks if block)


def render_local(skills: Iterable[LocalListingEntry]) -> str:
    """Render an introduction and a line per skill, without hidden ones; "" if empty.

    >>> render_local(LocalSkills(".").list().items)
    ''
    """
    lines = []
    for skill in filter_visible(skills):
        identity, name, description = map(to_single_line, (skill.id, skill.name, skill.description))
        lines.append(f"- id: {identity}; name: {name}; description: {description}")
    return "\n".join((LOCAL_INTRO, *lines)) if lines else ""


def render_markdown(entries: Iterable[ListingEntry]) -> str:
    """Render a Markdown list for a README, without hidden skills; "" if empty."""
    items = []
    for entry in filter_visible(entries):
        name, description = (
            _MARKDOWN_INLINE.sub(r"\\\g<0>", to_single_line(text))
            for text in (entry.name, entry.description)
        )
        # A code span needs more backticks around it than it has in a row.
        location = to_single_line(entry.location)
        longest = max(map(len, _BACKTICKS.findall(location)), default=0)
        fence, space = "`" * (longest + 1), " " if longest else ""
        items.append(f"- **{name}**: {description} ({fence}{space}{location}{space}{fence})")
    return "\n".join(items)


def serialize_listing(entries: Iterable[ListingEntry]) -> list[ListingEntryJson]:
    """Serialize the skills that are not hidden from models."""
    return [
        {"name": entry.name, "description": entry.description, "location": entry.location}
        for entry in filter_visible(entries)
    ]
