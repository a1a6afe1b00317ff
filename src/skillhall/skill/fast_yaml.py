"""A reader for the plainest YAML: what most skills are written in, at a tenth of the cost.

It understands one-line values (plain or quoted), maps and lists by indentation, flat flow lists
and maps, and evenly indented block scalars. At the slightest doubt it answers `None` and the
careful reader decides; a differential test holds the two equal.

It also reads the commonest fault, a plain value with a colon and a space in it: no YAML reader
accepts that, so the text is taken as it stands and the field is reported.
"""

from __future__ import annotations

import re
from sys import intern
from typing import NamedTuple

from skillhall.skill.values import BOOLEANS, TEXT_FIELDS, Fields, Value

# One line each: its indent, then `key:` with or without a value, or `- item`, or neither.
_LINES = re.compile(
    r"^( *+)(?:([A-Za-z_][A-Za-z0-9_-]*+):(?: ++([^\n]*+))?|- ++([^\n]*+)|[^\n]*+)\n", re.MULTILINE
)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
_BLOCK_STYLE = re.compile(r"[|>]-?")
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*+)"')
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*+)'")
_ESCAPED = re.compile(r"\\(.)")
_FLOW = re.compile(r"(?:\[(?P<list>[^\[\]{}#\\]*+)\]|\{(?P<map>[^\[\]{}#\\]*+)\})(?: ++#.*+)?")
_FLOW_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ ./+-]*+")

# Words that some YAML version reads as something other than text; none is longer than five.
_TYPED_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_LONGEST_TYPED_WORD = 5
# What the careful reader bounds, this one never comes near to: depth, number of values, long keys.
_MAX_INDENT = 16
_MAX_LINES = 50
_MAX_KEY = 128
_MAX_FLOW_ITEMS = 8


class PlainReading(NamedTuple):
    """What the fast reader made of a block."""

    fields: Fields
    flow_line: int = 0  # the first line in flow style, or 0
    unquoted_colons: tuple[tuple[str, int], ...] = ()  # the fields at fault, and their lines


class _Doubt(Exception):
    """This text is beyond the fast reader."""


def read_plain_yaml(block: str) -> PlainReading | None:
    """What `block` says, or `None` if in doubt."""
    if not block.replace("\n", "").isprintable() or block[-1:] not in ("", "\n"):
        return None
    reader = _Reader(block)
    if reader.count > _MAX_LINES:
        return None
    try:
        fields = reader.read_map("")
    except _Doubt:
        return None
    if reader.at < reader.count:
        return None
    return PlainReading(fields, reader.flow, tuple(reader.colons))


class _Reader:
    """Reads the lines of a block one after another."""

    __slots__ = ("at", "block", "colons", "count", "flow", "lines")

    def __init__(self, block: str) -> None:
        self.block = block
        self.lines: list[tuple[str, str, str, str]] = _LINES.findall(block)
        self.count = len(self.lines)
        self.at = 0
        self.flow = 0
        self.colons: list[tuple[str, int]] = []

    def read_map(self, indent: str, *, as_text: bool = False) -> Fields:
        """The `key: value` lines at this indent."""
        fields: Fields = {}
        lines = self.lines
        while self.at < self.count:
            spaces, key, text, _ = lines[self.at]
            if not key or spaces != indent:
                if self._ends_map(spaces, indent):
                    break
                continue
            if key in fields or len(key) > _MAX_KEY:
                raise _Doubt
            if len(key) <= _LONGEST_TYPED_WORD and key.lower() in _TYPED_WORDS:
                raise _Doubt
            self.at += 1
            expects_text = as_text or (key in TEXT_FIELDS and not indent)
            fields[intern(key)] = self._value(key, text, indent, expects_text)
        return fields

    def _value(self, key: str, text: str, indent: str, as_text: bool) -> Value:  # noqa: FBT001 - hot
        if not text:
            return self._nested(indent, as_text=key == "metadata" and not indent)
        first = text[0]
        if first.isalpha():
            if ": " in text and not indent:
                return self._unquoted_colon(key, text.rstrip(" "))
            return _plain(text, as_text)
        if first in "|>":
            return self._block_scalar(text.rstrip(" "), indent)
        if first in "[{":
            self.flow = self.flow or self.at
            return _flow(
                text.rstrip(" "), as_text=first == "{" and key == "metadata" and not indent
            )
        return _scalar(text.rstrip(" "), as_text)

    def _ends_map(self, spaces: str, indent: str) -> bool:
        """Whether the line belongs to a map further out; passes over blanks and comments."""
        text = self.block.split("\n")[self.at]
        if text and text[0] != "#":
            if len(spaces) < len(indent) or (not spaces and not indent):
                return True
            raise _Doubt
        # Below a key, a blank line or comment is for the careful reader.
        if indent or spaces:
            raise _Doubt
        self.at += 1
        return False

    def _nested(self, indent: str, *, as_text: bool) -> Value:
        """What stands on the lines below a key."""
        if self.at == self.count:
            return None
        spaces, key, _, item = self.lines[self.at]
        if item and len(spaces) >= len(indent):
            return self._list(spaces)
        if len(spaces) <= len(indent):
            return None
        if not key or len(spaces) > _MAX_INDENT:
            raise _Doubt
        return self.read_map(spaces, as_text=as_text)

    def _list(self, indent: str) -> list[Value]:
        found: list[Value] = []
        while self.at < self.count:
            spaces, key, _, item = self.lines[self.at]
            if not item or spaces != indent:
                if len(spaces) > len(indent) or (not key and len(spaces) == len(indent)):
                    raise _Doubt
                break
            found.append(_scalar(item.rstrip(" "), as_text=False))
            self.at += 1
        return found

    def _unquoted_colon(self, key: str, text: str) -> str:
        if " #" in text or text[-1] == ":":
            raise _Doubt
        self.colons.append((key, self.at))
        return text

    def _block_scalar(self, style: str, indent: str) -> str:
        if _BLOCK_STYLE.fullmatch(style) is None:
            raise _Doubt
        start = self.at
        while self.at < self.count and len(self.lines[self.at][0]) > len(indent):
            self.at += 1
        if self.at == start:
            raise _Doubt
        lines = self.block.split("\n")
        # A blank line may go on with more of the same value.
        if self.at < self.count and not lines[self.at]:
            raise _Doubt
        margin = self.lines[start][0]
        found = []
        for line in lines[start : self.at]:
            text = line[len(margin) :]
            if not line.startswith(margin) or not text or text[0] == " " or text[-1] == " ":
                raise _Doubt
            found.append(text)
        joined = (" " if style[0] == ">" else "\n").join(found)
        return joined if style[-1] == "-" else joined + "\n"


def _flow(text: str, *, as_text: bool) -> Value:
    """A flow list or map of plain or simply quoted items."""
    match = _FLOW.fullmatch(text)
    if match is None:
        raise _Doubt
    inner: str = match["list"] if match["map"] is None else match["map"]
    items = [item.strip(" ") for item in inner.split(",")] if inner.strip(" ") else []
    if len(items) > _MAX_FLOW_ITEMS:
        raise _Doubt
    if match["map"] is None:
        return [_flow_scalar(item, as_text=False) for item in items]
    found: Fields = {}
    for item in items:
        key, colon, value = item.partition(": ")
        if not colon or key in found or _KEY.fullmatch(key) is None:
            raise _Doubt
        if key.lower() in _TYPED_WORDS:
            raise _Doubt
        found[intern(key)] = _flow_scalar(value.strip(" "), as_text=as_text)
    return found


def _flow_scalar(text: str, *, as_text: bool) -> Value:
    inner = text[1:-1] if len(text) > 2 and text[0] in "\"'" and text[0] == text[-1] else text  # noqa: PLR2004
    if _FLOW_ITEM.fullmatch(inner) is None:
        raise _Doubt
    return inner if inner is not text else _scalar(text, as_text=as_text)


def _scalar(text: str, as_text: bool) -> Value:  # noqa: FBT001 - hot
    first = text[:1]
    if first == '"':
        return _ESCAPED.sub(r"\1", _quoted(_DOUBLE_QUOTED, text))
    if first == "'":
        return _quoted(_SINGLE_QUOTED, text).replace("''", "'")
    # Numbers and dates begin with a digit; where text is expected that is a finding.
    if first.isalpha() or ("0" <= first <= "9" and not as_text):
        return _plain(text, as_text)
    raise _Doubt


def _plain(text: str, as_text: bool) -> Value:  # noqa: FBT001 - hot
    if text[-1] in " :":
        text = text.rstrip(" ")
        if text[-1] == ":":
            raise _Doubt
    if ": " in text or " #" in text:
        raise _Doubt
    if len(text) <= _LONGEST_TYPED_WORD and text.lower() in _TYPED_WORDS:
        if as_text or text not in BOOLEANS:
            raise _Doubt
        return BOOLEANS[text]
    return text


def _quoted(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    if match is None:
        raise _Doubt
    return match[1]
