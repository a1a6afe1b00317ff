"""Edits the name, description and body of a SKILL.md; all other bytes stay."""

from __future__ import annotations

from typing import NamedTuple

from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    find_frontmatter,
    normalize_newlines,
)
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.yaml.values import Fields


class SkillText(NamedTuple):
    """The parts of a skill that an author edits in a form."""

    name: str
    description: str
    body: str = ""


def parse_skill_text(data: bytes) -> SkillText:
    """Read name, description and body for a form."""
    parsed = parse_skill(data, None, KeyCase.ANY)
    return SkillText(parsed.frontmatter.name, parsed.frontmatter.description, parsed.body)


def edit_skill_md(data: bytes, text: SkillText) -> bytes:
    """Return the SKILL.md with the changed parts replaced. Raises: EditRefused."""
    before, fields = parse_skill_text(data), parse_skill(data).frontmatter.fields
    document = Document(data)
    if len(text.name.strip().splitlines()) > 1:
        raise EditRefused("the name contains a line break")
    if text.name.strip() != before.name:
        document = document.with_field(_find_key(fields, "name"), text.name.strip())
    if text.description.rstrip() != before.description:
        document = document.with_field(_find_key(fields, "description"), text.description.rstrip())
    if normalize_newlines(text.body).strip() != before.body:
        document = document.with_body(_build_body(document.data, text.body))
    return document.data


def _find_key(fields: Fields, name: str) -> str:
    """Return the key as the file spells it: some agents accept `Name:` for `name:`."""
    return next((key for key in fields if key.lower() == name), name)


def _build_body(data: bytes, text: str) -> str:
    """Return the new body with the line endings and outer blank lines of the old one."""
    block = find_frontmatter(data)
    start = block.body_start if isinstance(block, FrontmatterBlock) else 0
    old = data[start:].decode("utf-8", "replace")
    plain, new = normalize_newlines(old), normalize_newlines(text)
    if plain.strip():
        lead = plain[: len(plain) - len(plain.lstrip("\n"))]
        tail = plain[len(plain.rstrip("\n")) :] or "\n"
        new = f"{lead}{new.strip()}{tail}"
    return new.replace("\n", "\r\n") if "\r\n" in old else new
