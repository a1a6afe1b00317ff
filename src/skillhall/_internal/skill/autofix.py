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


class AutofixResult(NamedTuple):
    """The fixed bytes and one sentence per change."""

    data: bytes
    changes: tuple[str, ...]


def autofix(data: bytes, folder: str) -> AutofixResult:
    """Apply every safe fix to a SKILL.md; `folder` is the name of its folder."""
    changes: list[str] = []

    def edit(change: str, method: Callable[[Document, str, str], Document], *args: str) -> None:
        """Apply a change and record it, unless the editor refuses it."""
        nonlocal data
        with suppress(EditRefused):
            data = method(Document(data), *args).data
            changes.append(change)

    if not isinstance(find_frontmatter(data), MissingFrontmatter):
        if data.startswith(BOM):
            data = data.removeprefix(BOM)
            changes.append("removed the byte order mark")
        # Only blank lines can precede the frontmatter.
        if data[:1].isspace():
            data = data.lstrip(b" \t\r\n")
            changes.append("removed blank lines before the frontmatter")
    for key, value in [*_find_broken_plain_text(data)]:
        edit(f"quoted the value of {key!r}", Document.with_field, key, value)
    for key in parse_frontmatter(data).frontmatter.fields:
        lower = key.lower()
        if key != lower and lower in KNOWN_FIELDS:
            change = f"renamed the field {key!r} to {lower!r}"
            edit(change, Document.with_renamed_field, key, lower)
    name = parse_frontmatter(data).frontmatter.name
    if name and name != folder and name.lower().replace("_", "-") == folder:
        change = f"changed the name {name!r} to {folder!r}"
        edit(change, Document.with_field, "name", folder)
    if (tools := _join_allowed_tools(data)) is not None:
        change = "separated the entries of 'allowed-tools' with spaces"
        edit(change, Document.with_field, "allowed-tools", tools)
    return AutofixResult(data, tuple(changes))


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
    if head.block is None or not is_certain:
        return None
    text = " ".join(head.frontmatter.allowed_tools)
    read_back = Frontmatter({"allowed-tools": text}).allowed_tools
    # A list may have comments, which a single line would lose.
    is_lossless = read_back == head.frontmatter.allowed_tools and b"#" not in data[: head.block.end]
    return text if is_lossless else None
