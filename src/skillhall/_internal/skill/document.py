"""A SKILL.md that can be written back byte for byte, and edited one field at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter import (
    FrontmatterBlock,
    MissingFrontmatter,
    find_frontmatter,
)
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlReadError, locate_fields
from skillhall._internal.skill.yaml.quoting import format_scalar
from skillhall._internal.skill.yaml.repair import locate_fields_leniently
from skillhall.errors import EditRefused as EditRefused  # noqa: PLC0414 - part of this module

if TYPE_CHECKING:
    from skillhall._internal.skill.yaml.result import YamlResult
    from skillhall._internal.skill.yaml.values import Fields

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_COLON = re.compile(r"[ \t]*:")
_REST_OF_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of a SKILL.md; every edit gives a new document and leaves all other bytes."""

    data: bytes

    def with_field(self, key: str, text: str) -> Document:
        """The document with `key` set to `text`. Raises: EditRefused."""
        block, source = self._read_source()
        if _KEY.fullmatch(key) is None:
            raise EditRefused(f"{key!r} cannot be the name of a field")
        span = _locate_spans(source).get(key)
        if span is None:
            edited = f"{source}{key}: {format_scalar(text)}{_detect_line_break(self.data)}"
        else:
            edited = f"{source[: span.value_start]} {format_scalar(text)}{source[span.value_end :]}"
        return self._replace_block(block, edited, {**_parse_source(source).fields, key: text}, key)

    def without_field(self, key: str) -> Document:
        """The document without `key`; unchanged if it is not there. Raises: EditRefused."""
        block, source = self._read_source()
        span = _locate_spans(source).get(key)
        if span is None:
            return self
        rest = _REST_OF_LINE.match(source, span.value_end)
        indent = len(source[: span.key_start]) - len(source[: span.key_start].rstrip(" "))
        edited = (
            source[: span.key_start - indent] + source[rest.end() if rest else span.value_end :]
        )
        fields = _parse_source(source).fields
        return self._replace_block(
            block, edited, {k: v for k, v in fields.items() if k != key}, key
        )

    def with_renamed_field(self, key: str, new_key: str) -> Document:
        """The document with the field `key` called `new`; its value stays. Raises: EditRefused."""
        block, source = self._read_source()
        span = _locate_spans(source).get(key)
        fields = _parse_source(source).fields
        if (
            span is None
            or key not in fields
            or new_key in fields
            or _KEY.fullmatch(new_key) is None
        ):
            raise EditRefused(f"{key!r} cannot be renamed to {new_key!r}")
        edited = source[: span.key_start] + new_key + source[span.key_start :].removeprefix(key)
        return self._replace_block(
            block, edited, {new_key if k == key else k: fields[k] for k in fields}, key
        )

    def with_body(self, text: str) -> Document:
        """The document with another body; the frontmatter keeps its bytes. Raises: EditRefused."""
        block, _ = self._read_source()
        before = self.data[: block.body_start]
        gap = "" if before.endswith((b"\n", b"\r")) else _detect_line_break(self.data)
        return Document(before + _encode(gap + text))

    def _replace_block(
        self, block: FrontmatterBlock, source: str, expected: Fields, key: str
    ) -> Document:
        """The document with `source` as its block, if that says exactly what was meant."""
        before, after = _parse_source(self._read_source()[1]), _parse_source(source)
        mended = _is_repaired(before) or not _is_repaired(after)
        data = self.data[: block.start] + _encode(source) + self.data[block.end :]
        found = find_frontmatter(data)
        is_whole = isinstance(found, FrontmatterBlock) and data[found.start : found.end] == _encode(
            source
        )
        if not (mended and is_whole) or after.fields != expected:
            raise EditRefused(f"{key!r} cannot be changed alone; edit the file by hand")
        return Document(data)

    def _read_source(self) -> tuple[FrontmatterBlock, str]:
        block = find_frontmatter(self.data)
        if isinstance(block, MissingFrontmatter):
            raise EditRefused(f"the document has no frontmatter to edit ({block.value})")
        try:
            return block, self.data[block.start : block.end].decode("utf-8")
        except UnicodeDecodeError:
            raise EditRefused("the frontmatter is not UTF-8") from None


@dataclass(frozen=True, slots=True)
class FieldSpan:
    """Where a field stands: its key, what follows its colon, and its end (character offsets)."""

    key_start: int
    value_start: int
    value_end: int


def _locate_spans(source: str) -> dict[str, FieldSpan]:
    try:
        marks = locate_fields(source)
    except YamlReadError as refusal:
        if not refusal.is_repairable:
            raise EditRefused(refusal.finding.message) from None
        marks = locate_fields_leniently(source)
    return {key: _build_span(source, *mark) for key, mark in marks.items()}


def _build_span(source: str, key: int, key_end: int, value_end: int) -> FieldSpan:
    colon = _COLON.match(source, key_end)
    if colon is None:
        raise EditRefused("the frontmatter writes a key in a way that is not edited here")
    value = colon.end()
    # A block scalar ends where the next token starts; the lines between are not the field's.
    end = value + len(source[value : max(value, value_end)].rstrip())
    return FieldSpan(key, value, end)


def _parse_source(source: str) -> YamlResult:
    try:
        return read_fields(_normalize_line_breaks(source))
    except YamlReadError as refusal:
        raise EditRefused(refusal.finding.message) from None


def _is_repaired(result: YamlResult) -> bool:
    return any(found.code is Code.YAML_REPAIRED for found in result.findings)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EditRefused("the text cannot be written as UTF-8") from None


def _normalize_line_breaks(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _detect_line_break(data: bytes) -> str:
    match = re.search(rb"\r\n|[\r\n]", data)
    return match.group().decode() if match else "\n"
