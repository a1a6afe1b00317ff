"""Inline skills: complete bodies in a system prompt, after the listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.render.escape import escape_closing_tag, escape_field
from skillhall._internal.render.listing import render_listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.render.listing import ListingEntry


class InlineSkill(NamedTuple):
    """A skill whose body is part of the prompt."""

    name: str
    location: str
    directory: str
    body: str


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
