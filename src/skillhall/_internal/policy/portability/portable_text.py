"""Fixes that make a SKILL.md portable without a change of its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from skillhall._internal.policy.portability.traits import Trait, find_traits
from skillhall._internal.skill.autofix import AutofixResult, autofix
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.parser import parse_frontmatter

# Values that are the same text for a person, but not for every reader of YAML.
_TYPED = frozenset({"number", "fraction", "boolean", "date", "yes"})
_LAYOUT_CHANGES: Final[tuple[tuple[Trait, str, Callable[[bytes], bytes]], ...]] = (
    (
        Trait.DELIMITER_SPACES,
        "removed the spaces after '---'",
        lambda data: re.sub(rb"^---[ \t]+(?=\r?$)", b"---", data, count=2, flags=re.MULTILINE),
    ),
    (Trait.NO_FINAL_NEWLINE, "added a line break at the end", lambda data: data + b"\n"),
    (
        Trait.KEY_SPACE,
        "removed the spaces before a colon",
        lambda data: re.sub(rb"^([\w-]+)[ \t]+:", rb"\1:", data, flags=re.MULTILINE),
    ),
    (
        Trait.YAML_TAB,
        "replaced a tab after a colon by a space",
        lambda data: re.sub(rb"^([\w-]+:)[ ]*\t[ \t]*", rb"\1 ", data, flags=re.MULTILINE),
    ),
)


def make_portable(data: bytes, folder: str) -> AutofixResult:
    """Apply every safe fix to a SKILL.md, and those that only other clients need."""
    fixed, changes = autofix(data, folder)
    made = [*changes]
    if Trait.CR_LINE_BREAKS in find_traits(fixed, folder):
        fixed = re.sub(rb"\r(?!\n)", b"\n", fixed)
        made.append("replaced carriage returns by line feeds")
    for trait, change, apply in _LAYOUT_CHANGES:
        block = parse_frontmatter(fixed).block
        if block is not None and trait in find_traits(fixed, folder):
            replaced = apply(fixed[: block.body_start]) + fixed[block.body_start :]
            if _has_same_fields(fixed, replaced):
                fixed = replaced
                made.append(change)
    traits = find_traits(fixed, folder)
    for key, text, change in [*_find_field_changes(fixed, folder, traits)]:
        with suppress(EditRefused):
            fixed = Document(fixed).with_field(key, text).data
            made.append(change)
    return AutofixResult(fixed, tuple(made))


def _has_same_fields(before: bytes, after: bytes) -> bool:
    fields = parse_frontmatter(before).frontmatter.fields
    return parse_frontmatter(after).frontmatter.fields == fields


def _find_field_changes(
    data: bytes, folder: str, traits: frozenset[Trait]
) -> Iterator[tuple[str, str, str]]:
    """Yield the key, the text and a sentence for each field that is to be written again."""
    front = parse_frontmatter(data).frontmatter
    for key, text in (("name", front.name), ("description", front.description)):
        if text and any(f"{key}-{kind}" in traits for kind in _TYPED):
            yield key, text, f"quoted the value of {key!r}"
    is_split = traits & {Trait.DESCRIPTION_BLOCK, Trait.DESCRIPTION_WRAPPED}
    if is_split and "\n" not in front.description:
        yield "description", front.description, "wrote the description on one line"
    missing = traits & {Trait.NAME_MISSING, Trait.NAME_EMPTY, Trait.NAME_NULL}
    if missing and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", folder):
        yield "name", folder, f"added the name {folder!r}, that of the folder"
