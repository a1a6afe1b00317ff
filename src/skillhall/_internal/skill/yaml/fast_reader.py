"""A reader for the plainest YAML: what most skills are written in, at a tenth of the cost.

It understands one-line values (plain or quoted), maps and lists by indentation, flat flow lists
and maps, and evenly indented block scalars. At the slightest doubt it answers `None` and the
careful reader decides; a differential test holds the two equal.

It also reads the commonest faults: a plain value with a colon and a space in it, a quote or bracket
that is never closed. No YAML reader accepts those, so the text is taken as it stands and reported.
"""

from __future__ import annotations

import re
from sys import intern
from typing import NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.result import TYPED, Fault, fault_in, flow_style, not_text
from skillhall._internal.skill.yaml.values import BOOLEANS, TEXT_FIELDS, Fields, Value

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
    findings: tuple[Finding, ...] = ()
    faults: tuple[Fault, ...] = ()  # values that no YAML reader takes, read as plain text


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
    return PlainReading(fields, tuple(reader.findings), tuple(reader.faults))


class _Reader:
    """Reads the lines of a block one after another."""

    __slots__ = ("at", "block", "count", "faults", "findings", "lines")

    def __init__(self, block: str) -> None:
        self.block = block
        self.lines: list[tuple[str, str, str, str]] = _LINES.findall(block)
        self.count = len(self.lines)
        self.at = 0
        self.findings: list[Finding] = []
        self.faults: list[Fault] = []

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
            if as_text:
                label = f"metadata.{key}"
            else:
                label = key if key in TEXT_FIELDS and not indent else ""
            fields[intern(key)] = self._value(key, text, indent, label)
        return fields

    def _value(self, key: str, text: str, indent: str, label: str) -> Value:
        """One value; with a `label` text is expected there."""
        if not text:
            return self._nested(indent, as_text=key == "metadata" and not indent)
        if text[-1] == " ":
            text = text.rstrip(" ")
        first = text[0]
        if first.isalpha() and ": " not in text:
            return self._plain(text, label)
        if first in "|>":
            return self._block_scalar(text, indent)
        if not indent and self._is_fault(key, text):
            return text
        if first in "[{":
            if not any(found.code is Code.YAML_FLOW for found in self.findings):
                self.findings.append(flow_style(self.at))
            return self._flow(text, in_metadata=key == "metadata" and not indent)
        return self._scalar(text, label)

    def _is_fault(self, key: str, text: str) -> bool:
        """Whether no YAML reader takes the value; what it leaves open, nothing later closes."""
        if fault_in(text) is None:
            return False
        closing = {"[": "]}", "{": "]}"}.get(text[0], text[0] if text[0] in "\"'" else "")
        if sum(map(self.block.count, closing)) > (text[0] in "\"'"):
            raise _Doubt
        self.faults.append(Fault(key, self.at, text))
        return True

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
            found.append(self._scalar(item.rstrip(" "), ""))
            self.at += 1
        return found

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

    def _flow(self, text: str, *, in_metadata: bool) -> Value:
        """A flow list or map of plain or simply quoted items."""
        match = _FLOW.fullmatch(text)
        if match is None:
            raise _Doubt
        inner: str = match["list"] if match["map"] is None else match["map"]
        items = [item.strip(" ") for item in inner.split(",")] if inner.strip(" ") else []
        if len(items) > _MAX_FLOW_ITEMS:
            raise _Doubt
        if match["map"] is None:
            return [self._flow_scalar(item, "") for item in items]
        found: Fields = {}
        for item in items:
            key, colon, value = item.partition(": ")
            if not colon or key in found or _KEY.fullmatch(key) is None:
                raise _Doubt
            if key.lower() in _TYPED_WORDS:
                raise _Doubt
            label = f"metadata.{key}" if in_metadata else ""
            found[intern(key)] = self._flow_scalar(value.strip(" "), label)
        return found

    def _flow_scalar(self, text: str, label: str) -> Value:
        is_quoted = len(text) > 2 and text[0] in "\"'" and text[0] == text[-1]  # noqa: PLR2004
        inner = text[1:-1] if is_quoted else text
        if _FLOW_ITEM.fullmatch(inner) is None:
            raise _Doubt
        return inner if is_quoted else self._scalar(text, label)

    def _scalar(self, text: str, label: str) -> Value:
        first = text[:1]
        if first == '"':
            return _ESCAPED.sub(r"\1", _quoted(_DOUBLE_QUOTED, text))
        if first == "'":
            return _quoted(_SINGLE_QUOTED, text).replace("''", "'")
        if first.isalpha() or "0" <= first <= "9":
            return self._plain(text, label)
        raise _Doubt

    def _plain(self, text: str, label: str) -> Value:
        if ": " in text or " #" in text or text[-1] == ":":
            raise _Doubt
        is_word = len(text) <= _LONGEST_TYPED_WORD and text.lower() in _TYPED_WORDS
        if not label:
            if is_word and text not in BOOLEANS:
                raise _Doubt
            return BOOLEANS[text] if is_word else text
        if is_word or "0" <= text[0] <= "9":
            if text.lower() == "null":
                raise _Doubt
            if TYPED.fullmatch(text):
                self.findings.append(not_text(label, text, self.at))
        return text


def _quoted(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    if match is None:
        raise _Doubt
    return match[1]
