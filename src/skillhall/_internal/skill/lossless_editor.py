"""Lossless editor for a SKILL.md: bytes outside the edited part stay the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    MissingFrontmatter,
    find_frontmatter,
    normalize_newlines,
)
from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.yaml.full_reader import locate_fields
from skillhall._internal.skill.yaml.lenient_reader import locate_fields_leniently, read_fields
from skillhall._internal.skill.yaml.quoting import format_scalar
from skillhall._internal.skill.yaml.values import Fields
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError, YamlResult
from skillhall.errors import EditRefused as EditRefused  # noqa: PLC0414 - part of this module

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
FORM_FIELDS = ("license", "compatibility", "allowed-tools")
_COLON = re.compile(r"[ \t]*:")
_REST_OF_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of a SKILL.md. Every edit returns a new document.

    ```python
    from pathlib import Path

    from skillhall import Document

    path = Path("skills/pdf-tools/SKILL.md")
    document = Document(path.read_bytes()).with_field("description", "Reads and fills PDF forms.")
    path.write_bytes(document.data)  # only that field changed
    ```
    """

    data: bytes

    def with_field(self, key: str, text: str) -> Document:
        """Return the document with `key` set to `text`. Raises: EditRefused."""
        block, source = self._read_source()
        if _KEY.fullmatch(key) is None:
            raise EditRefused(f"{key!r} is not a valid field name")
        span = _locate_spans(source).get(key)
        if span is None:
            edited = f"{source}{key}: {format_scalar(text)}{_detect_line_break(self.data)}"
        else:
            edited = f"{source[: span.value_start]} {format_scalar(text)}{source[span.value_end :]}"
        return self._replace_block(block, edited, {**_parse_source(source).fields, key: text}, key)

    def without_field(self, key: str) -> Document:
        """Return the document without the field `key`, if any. Raises: EditRefused."""
        block, source = self._read_source()
        span = _locate_spans(source).get(key)
        if span is None:
            return self
        rest = _REST_OF_LINE.match(source, span.value_end)
        end = rest.end() if rest else span.value_end
        edited = source[: span.key_start].rstrip(" ") + source[end:]
        expected = {k: v for k, v in _parse_source(source).fields.items() if k != key}
        return self._replace_block(block, edited, expected, key)

    def with_renamed_field(self, key: str, new_key: str) -> Document:
        """Return the document with `key` renamed to `new_key`. Raises: EditRefused."""
        block, source = self._read_source()
        span = _locate_spans(source).get(key)
        fields = _parse_source(source).fields
        is_new = new_key not in fields and _KEY.fullmatch(new_key) is not None
        if span is None or key not in fields or not is_new:
            raise EditRefused(f"{key!r} cannot be renamed to {new_key!r}")
        edited = source[: span.key_start] + new_key + source[span.key_start :].removeprefix(key)
        expected = {new_key if k == key else k: fields[k] for k in fields}
        return self._replace_block(block, edited, expected, key)

    def with_body(self, text: str) -> Document:
        """Return the document with its body replaced by `text`. Raises: EditRefused."""
        block, _ = self._read_source()
        before = self.data[: block.body_start]
        gap = "" if before.endswith((b"\n", b"\r")) else _detect_line_break(self.data)
        return Document(before + _encode(gap + text))

    def _replace_block(
        self, block: FrontmatterBlock, source: str, expected: Fields, key: str
    ) -> Document:
        """Replace the frontmatter, provided the result parses to the `expected` fields.

        Raises: EditRefused if it does not.
        """
        before, after = _parse_source(self._read_source()[1]), _parse_source(source)
        # An edit must not turn valid YAML into YAML that needs repair.
        needs_new_repair = _is_repaired(after) and not _is_repaired(before)
        encoded = _encode(source)
        data = self.data[: block.start] + encoded + self.data[block.end :]
        # A "---" line in the new value would end the block early.
        found = find_frontmatter(data)
        is_intact = isinstance(found, FrontmatterBlock) and data[found.start : found.end] == encoded
        if needs_new_repair or not is_intact or after.fields != expected:
            raise EditRefused(
                f"{key!r} cannot be changed without affecting other content; edit the file by hand"
            )
        return Document(data)

    def _read_source(self) -> tuple[FrontmatterBlock, str]:
        block = find_frontmatter(self.data)
        if isinstance(block, MissingFrontmatter):
            raise EditRefused(f"the document has no frontmatter to edit ({block.value})")
        try:
            return block, self.data[block.start : block.end].decode("utf-8")
        except UnicodeDecodeError:
            raise EditRefused("the frontmatter is not UTF-8") from None


class FieldSpan(NamedTuple):
    """Character offsets of a field: start of the key, start and end of the value."""

    key_start: int
    value_start: int
    value_end: int


def locate_frontmatter_fields(data: bytes) -> dict[str, FieldSpan]:
    """Return the spans of all fields, as offsets in the decoded document.

    It is empty if there is no frontmatter, or its fields cannot be located.
    """
    block = find_frontmatter(data)
    if isinstance(block, MissingFrontmatter):
        return {}
    try:
        before = len(data[: block.start].decode("utf-8"))
        spans = _locate_spans(data[block.start : block.end].decode("utf-8"))
    except (UnicodeDecodeError, EditRefused):
        return {}
    return {key: FieldSpan(*(before + offset for offset in span)) for key, span in spans.items()}


def _locate_spans(source: str) -> dict[str, FieldSpan]:
    try:
        marks = locate_fields(source)
    except YamlReadError as error:
        if not error.is_repairable:
            raise EditRefused(error.finding.message) from None
        marks = locate_fields_leniently(source)
    spans = {}
    for key, (start, key_end, value_end) in marks.items():
        colon = _COLON.match(source, key_end)
        if colon is None:
            raise EditRefused("a key in the frontmatter is written in a form that cannot be edited")
        value = colon.end()
        # PyYAML ends a block scalar at the next token, but blank lines before that token are not
        # part of the value.
        end = value + len(source[value : max(value, value_end)].rstrip())
        spans[key] = FieldSpan(start, value, end)
    return spans


def _parse_source(source: str) -> YamlResult:
    try:
        return read_fields(normalize_newlines(source))
    except YamlReadError as error:
        raise EditRefused(error.finding.message) from None


def _is_repaired(result: YamlResult) -> bool:
    return any(finding.code is Code.YAML_REPAIRED for finding in result.findings)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EditRefused("the text cannot be encoded as UTF-8") from None


def _detect_line_break(data: bytes) -> str:
    match = re.search(rb"\r\n|[\r\n]", data)
    return match.group().decode() if match else "\n"


class SkillText(NamedTuple):
    """The parts of a skill that an author edits in a form."""

    name: str
    description: str
    body: str = ""
    fields: tuple[tuple[str, str], ...] = ()  # others to change; "" deletes one


def parse_form_fields(data: bytes) -> dict[str, str]:
    """Return the optional fields of the specification that a form can edit.

    A field that is not a string is missing: it is edited in the file.
    """
    present = parse_skill(data, None, KeyCase.ANY).frontmatter.fields
    values = {key: present.get(key, "") for key in FORM_FIELDS}
    return {key: value for key, value in values.items() if isinstance(value, str)}


def parse_skill_text(data: bytes) -> SkillText:
    """Read name, description and body for a form."""
    parsed = parse_skill(data, None, KeyCase.ANY)
    return SkillText(parsed.frontmatter.name, parsed.frontmatter.description, parsed.body)


def edit_skill_md(data: bytes, text: SkillText) -> bytes:
    """Return the SKILL.md with the changed parts replaced. Raises: EditRefused."""
    before = parse_skill_text(data)
    # Keys stay as the file spells them: some agents accept `Name:` for `name:`. Reversed, because
    # the first of several spellings is used.
    keys = {key.lower(): key for key in reversed(parse_skill(data).frontmatter.fields)}
    document = Document(data)
    if len(text.name.strip().splitlines()) > 1:
        raise EditRefused("the name contains a line break")
    if text.name.strip() != before.name:
        document = document.with_field(keys.get("name", "name"), text.name.strip())
    if text.description.rstrip() != before.description:
        key = keys.get("description", "description")
        document = document.with_field(key, text.description.rstrip())
    document = edit_fields(document, text.fields)
    if normalize_newlines(text.body).strip() != before.body:
        document = document.with_body(_build_body(document.data, text.body))
    return document.data


def edit_fields(document: Document, fields: Iterable[tuple[str, str]]) -> Document:
    """Return the document with other values of some fields; "" deletes one. Raises: EditRefused."""
    present = parse_form_fields(document.data)
    keys = {key.lower(): key for key in reversed(parse_skill(document.data).frontmatter.fields)}
    for key, value in fields:
        if (text := value.strip()) == present.get(key, ""):
            continue
        name = keys.get(key, key)
        document = document.with_field(name, text) if text else document.without_field(name)
    return document


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
