"""Inline skills: whole bodies in a system prompt, after the listing of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.render.escape import escape_closing_tag, escape_field
from skillhall._internal.render.listing import render_listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.render.listing import ListingEntry


class InlineSkill(NamedTuple):
    """A skill whose body goes into the prompt."""

    name: str
    location: str
    directory: str
    body: str


def render_inline(name: str, location: str, directory: str, body: str) -> str:
    """The `<skill>` block of one skill; its body is literal but cannot close the block."""
    return (
        f'<skill name="{escape_field(name)}" location="{escape_field(location)}">\n'
        f"References are relative to {escape_field(directory)}.\n"
        "\n"
        f"{escape_closing_tag(body, 'skill')}\n"
        "</skill>"
    )


def render_instructions(listed: Iterable[ListingEntry], inlined: Iterable[InlineSkill]) -> str:
    """The listing, then the inline blocks, one blank line between; "" if nothing is selected."""
    blocks = [render_listing(listed), *(render_inline(*skill) for skill in inlined)]
    return "\n\n".join(block for block in blocks if block)
