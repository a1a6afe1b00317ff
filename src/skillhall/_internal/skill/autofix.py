"""Automatic fixes of a SKILL.md that do not change its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeAlias

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

DocumentEdit: TypeAlias = "tuple[Document, str]"  # the new document, and the change in words


# First characters of quoted and block scalars, lists, maps, anchors, aliases and tags.
_YAML_INDICATORS = "\"'[{|>&*!"


class AutofixResult(NamedTuple):
    """The fixed bytes and one sentence per change."""

    data: bytes
    changes: tuple[str, ...]


def autofix(data: bytes, folder: str) -> AutofixResult:
    """Apply every safe fix to a SKILL.md; `folder` is the name of its folder."""
    changes: list[str] = []
    for step in _STEPS:
        for edited, change in step(data, folder):
            data = edited.data
            changes.append(change)
    return AutofixResult(data, tuple(changes))


def _strip_bom(data: bytes, _folder: str) -> Iterator[DocumentEdit]:
    if data.startswith(BOM) and not isinstance(find_frontmatter(data), MissingFrontmatter):
        yield Document(data.removeprefix(BOM)), "removed the byte order mark"


def _strip_leading_blank(data: bytes, _folder: str) -> Iterator[DocumentEdit]:
    # If there is frontmatter, only blank lines can precede it.
    if not isinstance(find_frontmatter(data), MissingFrontmatter) and data[:1].isspace():
        yield Document(data.lstrip(b" \t\r\n")), "removed blank lines before the frontmatter"


def _quote_values(data: bytes, _folder: str) -> Iterator[DocumentEdit]:
    head = parse_frontmatter(data)
    if head.block is None or not any(f.code is Code.YAML_REPAIRED for f in head.findings):
        return
    document = Document(data)
    source = decode_text(data[head.block.start : head.block.end])
    for key, (start, _, end) in locate_fields_leniently(source).items():
        value = head.frontmatter.fields.get(key)
        if isinstance(value, str) and _is_broken_plain_text(source[start:end]):
            with suppress(EditRefused):
                document = document.with_field(key, value)
                yield document, f"quoted the value of {key!r}"


def _is_broken_plain_text(entry: str) -> bool:
    """Whether an invalid entry is plain text, and not an unclosed list, for example."""
    value = entry.partition(":")[2].partition("\n")[0].strip()
    if not value or value[0] in _YAML_INDICATORS:
        return False
    try:
        read_full_yaml(entry)
    except YamlReadError:
        return True
    return False


def _lowercase_keys(data: bytes, _folder: str) -> Iterator[DocumentEdit]:
    document = Document(data)
    for key in parse_frontmatter(data).frontmatter.fields:
        if key != key.lower() and key.lower() in KNOWN_FIELDS:
            with suppress(EditRefused):
                document = document.with_renamed_field(key, key.lower())
                yield document, f"renamed the field {key!r} to {key.lower()!r}"


def _match_name_to_folder(data: bytes, folder: str) -> Iterator[DocumentEdit]:
    name = parse_frontmatter(data).frontmatter.name
    if name and name != folder and name.lower().replace("_", "-") == folder:
        with suppress(EditRefused):
            edited = Document(data).with_field("name", folder)
            yield edited, f"changed the name {name!r} to {folder!r}"


def _join_allowed_tools(data: bytes, _folder: str) -> Iterator[DocumentEdit]:
    head = parse_frontmatter(data)
    codes = {finding.code for finding in head.findings}
    # Tools read from repaired YAML are a guess, which must not be written back.
    is_certain = Code.ALLOWED_TOOLS_FORM in codes and Code.YAML_REPAIRED not in codes
    if head.block is None or not is_certain:
        return
    text = " ".join(head.frontmatter.allowed_tools)
    read_back = Frontmatter({"allowed-tools": text}).allowed_tools
    # A list may have comments, which a single line would lose.
    if read_back == head.frontmatter.allowed_tools and b"#" not in data[: head.block.end]:
        with suppress(EditRefused):
            edited = Document(data).with_field("allowed-tools", text)
            yield edited, "separated the entries of 'allowed-tools' by spaces"


_STEPS: tuple[Callable[[bytes, str], Iterator[DocumentEdit]], ...] = (
    _strip_bom,
    _strip_leading_blank,
    _quote_values,
    _lowercase_keys,
    _match_name_to_folder,
    _join_allowed_tools,
)
