"""A SKILL.md that can be written back byte for byte, and edited one field at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall.skill.careful_yaml import YamlRefused, locate_fields
from skillhall.skill.frontmatter import Block, Missing, find_block
from skillhall.skill.quoting import plain_or_quoted
from skillhall.skill.repair import locate_entries
from skillhall.skill.yaml_fields import read_fields

if TYPE_CHECKING:
    from skillhall.skill.values import Fields

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class EditRefused(ValueError):
    """The edit would change more than the field it names, or there is no frontmatter to edit."""


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of a SKILL.md; every edit gives a new document and leaves all other bytes."""

    data: bytes

    def with_field(self, key: str, text: str) -> Document:
        """The document with `key` set to `text`. Raises: EditRefused."""
        block, source = self._source()
        if _KEY.fullmatch(key) is None:
            raise EditRefused(f"{key!r} cannot be the name of a field")
        span = _spans(source).get(key)
        if span is None:
            start = end = len(source)
            written = f"{key}: {plain_or_quoted(text)}{_line_break(self.data)}"
        else:
            start, end = span.value, span.end
            written = f" {plain_or_quoted(text)}"
        edited = source[:start] + written + source[end:]
        _verify(edited, {**_fields_of(source), key: text}, key)
        return self._with_block(block, edited)

    def without_field(self, key: str) -> Document:
        """The document without `key`; unchanged if it is not there. Raises: EditRefused."""
        block, source = self._source()
        span = _spans(source).get(key)
        if span is None:
            return self
        end = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|\Z)").match(source, span.end)
        edited = source[: span.key] + source[end.end() if end else span.end :]
        expected = _fields_of(source)
        expected.pop(key, None)
        _verify(edited, expected, key)
        return self._with_block(block, edited)

    def with_body(self, text: str) -> Document:
        """The document with another body; the frontmatter keeps its bytes. Raises: EditRefused."""
        block, _ = self._source()
        before = self.data[: block.body]
        gap = "" if before.endswith((b"\n", b"\r")) else _line_break(self.data)
        return Document(before + gap.encode() + text.encode())

    def _source(self) -> tuple[Block, str]:
        block = find_block(self.data)
        if isinstance(block, Missing):
            raise EditRefused(f"the document has no frontmatter to edit ({block.value})")
        try:
            return block, self.data[block.start : block.end].decode("utf-8")
        except UnicodeDecodeError:
            raise EditRefused("the frontmatter is not UTF-8") from None

    def _with_block(self, block: Block, source: str) -> Document:
        return Document(
            self.data[: block.start] + source.encode("utf-8") + self.data[block.end :]
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Where a field stands: its key, what follows its colon, and its end (character offsets)."""

    key: int
    value: int
    end: int


def _spans(source: str) -> dict[str, Span]:
    try:
        marks = locate_fields(source)
    except YamlRefused as refusal:
        if not refusal.repairable:
            raise EditRefused(refusal.finding.message) from None
        marks = locate_entries(source)
    return {key: _span(source, *mark) for key, mark in marks.items()}


def _span(source: str, key: int, key_end: int, value_end: int) -> Span:
    value = source.index(":", key_end) + 1
    # A block scalar ends where the next token starts; the lines between are not the field's.
    end = value + len(source[value : max(value, value_end)].rstrip())
    return Span(key, value, end)


def _fields_of(source: str) -> Fields:
    try:
        return dict(read_fields(_normalised(source)).fields)
    except YamlRefused as refusal:
        raise EditRefused(refusal.finding.message) from None


def _verify(edited: str, expected: Fields, key: str) -> None:
    try:
        found = read_fields(_normalised(edited)).fields
    except YamlRefused as refusal:
        raise EditRefused(refusal.finding.message) from None
    if found != expected:
        raise EditRefused(f"{key!r} cannot be changed alone; edit the file by hand")


def _normalised(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _line_break(data: bytes) -> str:
    match = re.search(rb"\r\n|[\r\n]", data)
    return match.group().decode() if match else "\n"
