"""A SKILL.md that can be written back byte for byte, and edited one field at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter import Block, Missing, find_block
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlRefused, locate_fields
from skillhall._internal.skill.yaml.quoting import plain_or_quoted
from skillhall._internal.skill.yaml.repair import locate_entries
from skillhall.errors import EditRefused as EditRefused  # noqa: PLC0414 - part of this module

if TYPE_CHECKING:
    from skillhall._internal.skill.yaml.result import Reading
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
        block, source = self._source()
        if _KEY.fullmatch(key) is None:
            raise EditRefused(f"{key!r} cannot be the name of a field")
        span = _spans(source).get(key)
        if span is None:
            edited = f"{source}{key}: {plain_or_quoted(text)}{_line_break(self.data)}"
        else:
            edited = f"{source[: span.value]} {plain_or_quoted(text)}{source[span.end :]}"
        return self._edited(block, edited, {**_read(source).fields, key: text}, key)

    def without_field(self, key: str) -> Document:
        """The document without `key`; unchanged if it is not there. Raises: EditRefused."""
        block, source = self._source()
        span = _spans(source).get(key)
        if span is None:
            return self
        rest = _REST_OF_LINE.match(source, span.end)
        indent = len(source[: span.key]) - len(source[: span.key].rstrip(" "))
        edited = source[: span.key - indent] + source[rest.end() if rest else span.end :]
        fields = _read(source).fields
        return self._edited(block, edited, {k: v for k, v in fields.items() if k != key}, key)

    def with_key(self, key: str, new: str) -> Document:
        """The document with the field `key` called `new`; its value stays. Raises: EditRefused."""
        block, source = self._source()
        span = _spans(source).get(key)
        fields = _read(source).fields
        if span is None or key not in fields or new in fields or _KEY.fullmatch(new) is None:
            raise EditRefused(f"{key!r} cannot be renamed to {new!r}")
        edited = source[: span.key] + new + source[span.key :].removeprefix(key)
        return self._edited(block, edited, {new if k == key else k: fields[k] for k in fields}, key)

    def with_body(self, text: str) -> Document:
        """The document with another body; the frontmatter keeps its bytes. Raises: EditRefused."""
        block, _ = self._source()
        before = self.data[: block.body]
        gap = "" if before.endswith((b"\n", b"\r")) else _line_break(self.data)
        return Document(before + _encoded(gap + text))

    def _edited(self, block: Block, source: str, expected: Fields, key: str) -> Document:
        """The document with `source` as its block, if that says exactly what was meant."""
        before, after = _read(self._source()[1]), _read(source)
        mended = _is_repaired(before) or not _is_repaired(after)
        data = self.data[: block.start] + _encoded(source) + self.data[block.end :]
        found = find_block(data)
        is_whole = isinstance(found, Block) and data[found.start : found.end] == _encoded(source)
        if not (mended and is_whole) or after.fields != expected:
            raise EditRefused(f"{key!r} cannot be changed alone; edit the file by hand")
        return Document(data)

    def _source(self) -> tuple[Block, str]:
        block = find_block(self.data)
        if isinstance(block, Missing):
            raise EditRefused(f"the document has no frontmatter to edit ({block.value})")
        try:
            return block, self.data[block.start : block.end].decode("utf-8")
        except UnicodeDecodeError:
            raise EditRefused("the frontmatter is not UTF-8") from None


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
    colon = _COLON.match(source, key_end)
    if colon is None:
        raise EditRefused("the frontmatter writes a key in a way that is not edited here")
    value = colon.end()
    # A block scalar ends where the next token starts; the lines between are not the field's.
    end = value + len(source[value : max(value, value_end)].rstrip())
    return Span(key, value, end)


def _read(source: str) -> Reading:
    try:
        return read_fields(_normalised(source))
    except YamlRefused as refusal:
        raise EditRefused(refusal.finding.message) from None


def _is_repaired(reading: Reading) -> bool:
    return any(found.code is Code.YAML_REPAIRED for found in reading.findings)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EditRefused("the text cannot be written as UTF-8") from None


def _normalised(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _line_break(data: bytes) -> str:
    match = re.search(rb"\r\n|[\r\n]", data)
    return match.group().decode() if match else "\n"
