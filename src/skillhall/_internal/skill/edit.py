"""Editing: the words of a skill changed where they stand, every other byte as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.document import Document, EditRefused
from skillhall._internal.skill.frontmatter import FrontmatterBlock, find_frontmatter
from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import parse_skill

if TYPE_CHECKING:
    from skillhall._internal.skill.yaml.values import Fields


class SkillText(NamedTuple):
    """What a person writes: a name, a description and the instructions."""

    name: str
    description: str
    body: str = ""


def parse_skill_text(data: bytes) -> SkillText:
    """The three as a form shows them."""
    parsed = parse_skill(data, None, KeyCase.ANY)
    return SkillText(parsed.frontmatter.name, parsed.frontmatter.description, parsed.body)


def edit_skill_md(data: bytes, text: SkillText) -> bytes:
    """The SKILL.md with these words; what says the same already keeps its bytes.

    Raises: EditRefused.
    """
    before, fields = parse_skill_text(data), parse_skill(data).frontmatter.fields
    document = Document(data)
    if len(text.name.strip().splitlines()) > 1:
        raise EditRefused("a name is one line; this one has a line break")
    if text.name.strip() != before.name:
        document = document.with_field(_find_key(fields, "name"), text.name.strip())
    if text.description.rstrip() != before.description:
        document = document.with_field(_find_key(fields, "description"), text.description.rstrip())
    if normalize_newlines(text.body).strip() != before.body:
        document = document.with_body(_build_body(document.data, text.body))
    return document.data


def normalize_newlines(text: str) -> str:
    """The text with line feeds alone: forms send other line ends than files have."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _find_key(fields: Fields, name: str) -> str:
    """How the file writes the field: an agent may take `Name:` for `name:`."""
    return next((key for key in fields if key.lower() == name), name)


def _build_body(data: bytes, text: str) -> str:
    """The new body between the blank lines of the old one, with its line ends."""
    block = find_frontmatter(data)
    old = data[block.body_start if isinstance(block, FrontmatterBlock) else 0 :].decode(
        "utf-8", "replace"
    )
    plain = normalize_newlines(old)
    lead = plain[: len(plain) - len(plain.lstrip("\n"))]
    tail = plain[len(plain.rstrip("\n")) :] or "\n"
    new = (
        f"{lead}{normalize_newlines(text).strip()}{tail}"
        if plain.strip()
        else normalize_newlines(text)
    )
    return new.replace("\n", "\r\n") if "\r\n" in old else new
