"""Fast reader for the simple YAML of most skills, at a tenth of the usual cost.

It supports one-line values (plain or quoted), maps and lists by indentation, flat flow lists and
maps, and evenly indented block scalars. If in doubt, it returns `None`, and the full reader takes
over. A differential test compares the two.

It also reads the most common errors: a plain value that contains ": ", text on the line of a block
indicator (`> text`), and an unclosed quote or bracket. No YAML parser accepts those, so the value
is read as plain text and reported.
"""

from __future__ import annotations

import re
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import BOOLEANS, TEXT_FIELDS, Fields, YamlValue
from skillhall._internal.skill.yaml.yaml_findings import (
    TYPED_SCALAR,
    InvalidValue,
    build_flow_style_finding,
    build_invalid_finding,
    build_not_text_finding,
    explain_invalid_value,
)

# Groups of a line: indent, then `key:` with or without a value, or `- item`, or neither.
_LINES = re.compile(
    r"^( *+)(?:([A-Za-z_][A-Za-z0-9_-]*+):(?: ++([^\n]*+))?|- ++([^\n]*+)|[^\n]*+)\n", re.MULTILINE
)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
_BLOCK_STYLE = re.compile(r"[|>]-?")
# A comment may follow the indicator; any other text on that line is an error.
_TEXT_AFTER_INDICATOR = re.compile(r"[|>](?:[-+][1-9]?|[1-9][-+]?)?+ ++[^ #]")
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*+)"')
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*+)'")
_ESCAPED = re.compile(r"\\(.)")
_FLOW = re.compile(r"(?:\[(?P<list>[^\[\]{}#\\]*+)\]|\{(?P<map>[^\[\]{}#\\]*+)\})(?: ++#.*+)?")
_FLOW_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ ./+-]*+")

# Words that are not text in some version of YAML.
_TYPED_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_LONGEST_TYPED_WORD = 5
# Far below the limits of the full reader, so that this one never has to report a limit.
_MAX_INDENT = 16
_MAX_LINES = 50
_MAX_KEY = 128
_MAX_CACHED_KEY = 40
_MAX_FLOW_ITEMS = 8
# The message of PyYAML for text after a block indicator.
_INLINE_BLOCK_CAUSE = build_invalid_finding(
    "did not find expected comment or line break", None
).message


class SimpleYamlResult(NamedTuple):
    """The result of the fast reader."""

    fields: Fields
    findings: tuple[Finding, ...] = ()
    invalid_values: tuple[InvalidValue, ...] = ()  # not YAML, read as plain text
    cause: str = ""  # the parser's message about them, if `explain_invalid_value` has none


class _NotSimple(Exception):
    """Raised for text that needs the full reader."""


def read_simple_yaml(block: str) -> SimpleYamlResult | None:
    """Read `block`; `None` if it is not simple YAML."""
    if not block.replace("\n", "").isprintable() or block[-1:] not in ("", "\n"):
        return None
    plain = _read_plain_lines(block)
    if plain is not None:
        return plain
    reader = _SimpleYamlReader(block)
    if reader.line_count > _MAX_LINES:
        return None
    try:
        fields = reader.read_map("")
    except _NotSimple:
        return None
    if reader.position < reader.line_count:
        return None
    return SimpleYamlResult(fields, tuple(reader.findings), tuple(reader.invalid_values))


def _read_plain_lines(  # noqa: C901, PLR0911, PLR0912, PLR0915 - a call per line is too slow
    block: str,
) -> SimpleYamlResult | None:
    """Read one-line values, at the top and in maps one level below; `None` if in doubt.

    Two thirds of all public skills contain nothing else. One function without calls takes a third
    of the time of `_SimpleYamlReader`.
    """
    lines = block.split("\n")
    if len(lines) > _MAX_LINES:
        return None
    del lines[-1]  # empty
    fields: Fields = {}
    invalid_values: list[InvalidValue] = []
    cause = ""
    margin, inner = 0, fields  # of the map that the line belongs to
    in_metadata = False
    opened: str | None = None  # a key whose map starts on the next line
    number = 0
    for line in lines:
        number += 1
        start, _, text = line.partition(": ")
        if not text:
            key = _to_plain_key(line[:-1]) if line[-1:] == ":" else None
            if key is None or key in fields or opened is not None:
                return None
            margin, opened = 0, key
            continue
        indent = 0
        if start[0:1] == " ":
            name = start.lstrip(" ")
            indent = len(start) - len(name)
            start = name
        if opened is not None:
            if not 0 < indent <= _MAX_INDENT:
                return None
            margin, inner = indent, {}
            fields[opened] = inner
            in_metadata, opened = opened == "metadata", None
        elif indent != margin:
            if indent:
                return None
            margin = 0
        key = _to_plain_key(start)
        target = inner if margin else fields
        if key is None or key in target:
            return None
        first, last = text[0], text[-1]
        if first.isalpha():
            if last in " :" or " #" in text:
                return None
            if ": " in text:
                if margin:
                    return None
                invalid_values.append(InvalidValue(key, number, text))
            elif len(text) <= _LONGEST_TYPED_WORD and text.lower() in _TYPED_WORDS:
                return None
        elif first in "\"'":
            if last != first or text.count(first) != 2 or "\\" in text:  # noqa: PLR2004
                return None
            text = text[1:-1]
        elif "0" <= first <= "9":
            expects_text = in_metadata if margin else key in TEXT_FIELDS
            if expects_text or last in " :" or " #" in text or ": " in text:
                return None
        elif margin or last == " " or _TEXT_AFTER_INDICATOR.match(text) is None:
            return None
        else:
            cause = _INLINE_BLOCK_CAUSE
            invalid_values.append(InvalidValue(key, number, text))
        target[key] = text
    # A key at the end has no value, and two kinds of errors need the message of the parser.
    if opened is not None or (cause and len(invalid_values) > 1):
        return None
    return SimpleYamlResult(fields, (), tuple(invalid_values), cause)


@lru_cache(maxsize=512)
def _match_plain_key(text: str) -> str | None:
    if _KEY.fullmatch(text) is None or text.lower() in _TYPED_WORDS:
        return None
    return intern(text)


def _to_plain_key(text: str) -> str | None:
    return _match_plain_key(text) if len(text) <= _MAX_CACHED_KEY else None


class _SimpleYamlReader:
    """Reads the lines of a block in order.

    `position` is the index of the next line. Since indexes count from 0, it is also the line number
    of the line that was read last.
    """

    __slots__ = ("block", "findings", "invalid_values", "line_count", "lines", "position")

    def __init__(self, block: str) -> None:
        self.block = block
        self.lines: list[tuple[str, str, str, str]] = _LINES.findall(block)
        self.line_count = len(self.lines)
        self.position = 0
        self.findings: list[Finding] = []
        self.invalid_values: list[InvalidValue] = []

    def read_map(self, indent: str, *, as_text: bool = False) -> Fields:
        """Read the `key: value` lines at this indent."""
        fields: Fields = {}
        lines = self.lines
        while self.position < self.line_count:
            spaces, key, text, _ = lines[self.position]
            if not key or spaces != indent:
                if self._end_map_or_skip_line(spaces, indent):
                    break
                continue
            if key in fields or len(key) > _MAX_KEY:
                raise _NotSimple
            if len(key) <= _LONGEST_TYPED_WORD and key.lower() in _TYPED_WORDS:
                raise _NotSimple
            self.position += 1
            if as_text:
                label = f"metadata.{key}"
            else:
                label = key if key in TEXT_FIELDS and not indent else ""
            fields[intern(key)] = self._read_value(key, text, indent, label)
        return fields

    def _read_value(self, key: str, text: str, indent: str, label: str) -> YamlValue:
        """Read one value. A `label` means that text is expected."""
        if not text:
            return self._read_nested(indent, as_text=key == "metadata" and not indent)
        if text[-1] == " ":
            text = text.rstrip(" ")
        first = text[0]
        if first.isalpha() and ": " not in text:
            return self._read_plain_scalar(text, label)
        if first in "|>":
            return self._read_block_scalar(text, indent)
        if not indent and self._record_if_invalid(key, text):
            return text
        if first in "[{":
            if not any(finding.code is Code.YAML_FLOW for finding in self.findings):
                self.findings.append(build_flow_style_finding(self.position))
            return self._read_flow(text, in_metadata=key == "metadata" and not indent)
        return self._read_scalar(text, label)

    def _record_if_invalid(self, key: str, text: str) -> bool:
        """Record a value that no YAML parser accepts; return whether it is one."""
        if explain_invalid_value(text) is None:
            return False
        # A later line may close the quote or bracket: only the full reader can tell. The opening
        # quote is counted too.
        closing = {"[": "]}", "{": "]}"}.get(text[0], text[0] if text[0] in "\"'" else "")
        if sum(map(self.block.count, closing)) > (text[0] in "\"'"):
            raise _NotSimple
        self.invalid_values.append(InvalidValue(key, self.position, text))
        return True

    def _end_map_or_skip_line(self, spaces: str, indent: str) -> bool:
        """Return whether the line ends the map; skip a blank line or a comment."""
        text = self.block.split("\n")[self.position]
        if text and text[0] != "#":
            if len(spaces) < len(indent) or (not spaces and not indent):
                return True
            raise _NotSimple
        # Inside a nested map, blank lines and comments need the full reader.
        if indent or spaces:
            raise _NotSimple
        self.position += 1
        return False

    def _read_nested(self, indent: str, *, as_text: bool) -> YamlValue:
        """Read the list or map on the lines below a key."""
        if self.position == self.line_count:
            return None
        spaces, key, _, item = self.lines[self.position]
        if item and len(spaces) >= len(indent):
            return self._read_list(spaces)
        if len(spaces) <= len(indent):
            return None
        if not key or len(spaces) > _MAX_INDENT:
            raise _NotSimple
        return self.read_map(spaces, as_text=as_text)

    def _read_list(self, indent: str) -> list[YamlValue]:
        items: list[YamlValue] = []
        while self.position < self.line_count:
            spaces, key, _, item = self.lines[self.position]
            if not item or spaces != indent:
                if len(spaces) > len(indent) or (not key and len(spaces) == len(indent)):
                    raise _NotSimple
                break
            items.append(self._read_scalar(item.rstrip(" "), ""))
            self.position += 1
        return items

    def _read_block_scalar(self, style: str, indent: str) -> str:
        if _BLOCK_STYLE.fullmatch(style) is None:
            raise _NotSimple
        start = self.position
        while self.position < self.line_count and len(self.lines[self.position][0]) > len(indent):
            self.position += 1
        if self.position == start:
            raise _NotSimple
        lines = self.block.split("\n")
        # The value may go on after a blank line.
        if self.position < self.line_count and not lines[self.position]:
            raise _NotSimple
        margin = self.lines[start][0]
        texts = []
        for line in lines[start : self.position]:
            text = line[len(margin) :]
            if not line.startswith(margin) or not text or text[0] == " " or text[-1] == " ":
                raise _NotSimple
            texts.append(text)
        joined = (" " if style[0] == ">" else "\n").join(texts)
        return joined if style[-1] == "-" else joined + "\n"

    def _read_flow(self, text: str, *, in_metadata: bool) -> YamlValue:
        """Read a flow list or map whose items are plain, or quoted without escapes."""
        match = _FLOW.fullmatch(text)
        if match is None:
            raise _NotSimple
        inner: str = match["list"] if match["map"] is None else match["map"]
        items = [item.strip(" ") for item in inner.split(",")] if inner.strip(" ") else []
        if len(items) > _MAX_FLOW_ITEMS:
            raise _NotSimple
        if match["map"] is None:
            return [self._read_flow_scalar(item, "") for item in items]
        fields: Fields = {}
        for item in items:
            key, colon, value = item.partition(": ")
            if not colon or key in fields or _KEY.fullmatch(key) is None:
                raise _NotSimple
            if key.lower() in _TYPED_WORDS:
                raise _NotSimple
            label = f"metadata.{key}" if in_metadata else ""
            fields[intern(key)] = self._read_flow_scalar(value.strip(" "), label)
        return fields

    def _read_flow_scalar(self, text: str, label: str) -> YamlValue:
        is_quoted = len(text) > 2 and text[0] in "\"'" and text[0] == text[-1]  # noqa: PLR2004
        inner = text[1:-1] if is_quoted else text
        if _FLOW_ITEM.fullmatch(inner) is None:
            raise _NotSimple
        return inner if is_quoted else self._read_scalar(text, label)

    def _read_scalar(self, text: str, label: str) -> YamlValue:
        first = text[:1]
        if first == '"':
            return _ESCAPED.sub(r"\1", _unquote(_DOUBLE_QUOTED, text))
        if first == "'":
            return _unquote(_SINGLE_QUOTED, text).replace("''", "'")
        if first.isalpha() or "0" <= first <= "9":
            return self._read_plain_scalar(text, label)
        raise _NotSimple

    def _read_plain_scalar(self, text: str, label: str) -> YamlValue:
        if ": " in text or " #" in text or text[-1] == ":":
            raise _NotSimple
        is_word = len(text) <= _LONGEST_TYPED_WORD and text.lower() in _TYPED_WORDS
        if not label:
            if is_word and text not in BOOLEANS:
                raise _NotSimple
            return BOOLEANS[text] if is_word else text
        if is_word or "0" <= text[0] <= "9":
            if text.lower() == "null":
                raise _NotSimple
            if TYPED_SCALAR.fullmatch(text):
                self.findings.append(build_not_text_finding(label, text, self.position))
        return text


def _unquote(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    if match is None:
        raise _NotSimple
    return match[1]
