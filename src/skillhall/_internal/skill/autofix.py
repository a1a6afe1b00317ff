"""Automatic fixes for a SKILL.md that do not change its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import (
    BOM,
    MissingFrontmatter,
    decode_text,
    find_frontmatter,
)
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.skill.yaml.full_reader import read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import locate_fields_leniently
from skillhall._internal.skill.yaml.values import KNOWN_FIELDS
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError

# First characters of quoted and block scalars, lists, maps, anchors, aliases and tags.
_YAML_INDICATORS = "\"'[{|>&*!"
_KEY_CODES = (Code.KEY_CASE, Code.NAME_MISSING, Code.DESCRIPTION_MISSING)
_NAME_CODES = (Code.NAME_UPPERCASE, Code.NAME_CHARACTERS, Code.NAME_NOT_FOLDER)


class AutofixResult(NamedTuple):
    """The fixed bytes and one sentence per change."""

    data: bytes
    changes: tuple[str, ...]


class Fix(NamedTuple):
    """One safe fix: what it changes, the findings that it removes, and the fixed bytes."""

    change: str
    codes: frozenset[Code]
    data: bytes


def autofix(data: bytes, folder: str) -> AutofixResult:
    """Apply every safe fix to a SKILL.md; `folder` is the name of its folder."""
    fixes = _apply_fixes(data, folder, bool)
    return AutofixResult(fixes[-1].data if fixes else data, tuple(fix.change for fix in fixes))


def find_fixes(data: bytes, folder: str) -> tuple[Fix, ...]:
    """Return every safe fix of a SKILL.md, each applied on its own."""
    alone = (
        _apply_fixes(data, folder, fix.change.__eq__) for fix in _apply_fixes(data, folder, bool)
    )
    # A fix that needs another one first is only part of `autofix`.
    return tuple(fixes[0] for fixes in alone if fixes)


def _apply_fixes(  # noqa: C901 - one fix after another
    data: bytes, folder: str, is_wanted: Callable[[str], bool]
) -> list[Fix]:
    """Apply the wanted fixes one after another; each has the bytes after it."""
    fixes: list[Fix] = []

    def apply(change: str, fixed: bytes, *codes: Code) -> None:
        nonlocal data
        if is_wanted(change):
            data = fixed
            fixes.append(Fix(change, frozenset(codes), data))

    def edit(
        change: str, codes: tuple[Code, ...], method: Callable[..., Document], *args: str
    ) -> None:
        """Apply a change, unless the editor refuses it."""
        with suppress(EditRefused):
            apply(change, method(Document(data), *args).data, *codes)

    if not isinstance(find_frontmatter(data), MissingFrontmatter):
        if data.startswith(BOM):
            apply("removed the byte order mark", data.removeprefix(BOM), Code.BOM)
        # Only blank lines can precede the frontmatter.
        if data[:1].isspace():
            change = "removed blank lines before the frontmatter"
            apply(change, data.lstrip(b" \t\r\n"), Code.LEADING_BLANK)
    for key, value in [*_find_broken_plain_text(data)]:
        change = f"quoted the value of {key!r}"
        edit(change, (Code.YAML_REPAIRED,), Document.with_field, key, value)
    for key in parse_frontmatter(data).frontmatter.fields:
        lower = key.lower()
        if key != lower and lower in KNOWN_FIELDS:
            change = f"renamed the field {key!r} to {lower!r}"
            edit(change, _KEY_CODES, Document.with_renamed_field, key, lower)
    name = parse_frontmatter(data).frontmatter.name
    if name and name != folder and name.lower().replace("_", "-") == folder:
        change = f"changed the name {name!r} to {folder!r}"
        edit(change, _NAME_CODES, Document.with_field, "name", folder)
    if (tools := _join_allowed_tools(data)) is not None:
        change = "separated the entries of 'allowed-tools' with spaces"
        edit(change, (Code.ALLOWED_TOOLS_FORM,), Document.with_field, "allowed-tools", tools)
    return fixes


def _find_broken_plain_text(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the key and value of each field that is plain text but not valid YAML.

    Values that start like other YAML, such as an unclosed list, are left alone.
    """
    head = parse_frontmatter(data)
    if head.block is None or not any(f.code is Code.YAML_REPAIRED for f in head.findings):
        return
    source = decode_text(data[head.block.start : head.block.end])
    for key, (start, _, end) in locate_fields_leniently(source).items():
        value, entry = head.frontmatter.fields.get(key), source[start:end]
        written = entry.partition(":")[2].partition("\n")[0].strip()
        if isinstance(value, str) and written and written[0] not in _YAML_INDICATORS:
            try:
                read_full_yaml(entry)
            except YamlReadError:
                yield key, value


def _join_allowed_tools(data: bytes) -> str | None:
    """Return `allowed-tools` joined by spaces, or `None` if it must stay as it is.

    That is the case if the field is valid, or if joining it could lose data.
    """
    head = parse_frontmatter(data)
    codes = {finding.code for finding in head.findings}
    # Tools read from repaired YAML are a guess, which must not be written back.
    is_certain = Code.ALLOWED_TOOLS_FORM in codes and Code.YAML_REPAIRED not in codes
    is_map = isinstance(head.frontmatter.fields.get("allowed-tools"), dict)
    if head.block is None or not is_certain or is_map:
        return None
    text = " ".join(head.frontmatter.allowed_tools)
    read_back = Frontmatter({"allowed-tools": text}).allowed_tools
    # A list may have comments, which a single line would lose.
    is_lossless = read_back == head.frontmatter.allowed_tools and b"#" not in data[: head.block.end]
    return text if is_lossless else None
