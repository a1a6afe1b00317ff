"""Fast reader for the simple YAML of most skills; takes a tenth of the usual time.

It supports one-line values (plain or quoted), maps and lists by indentation, flat flow lists and
maps, and evenly indented block scalars. If in doubt, it returns `None`, and the full reader takes
over. A differential test compares the two.

It also reads the most common errors: a plain value that contains ": ", text on the line of a block
indicator (`> text`), text after a closing quote, a backtick at the start, and an unclosed quote or
bracket. No YAML parser accepts those, so the value is read as plain text and reported.
"""

from __future__ import annotations

import re
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
_MAX_CACHED_KEYS = 512
_MAX_FLOW_ITEMS = 8
# The message of PyYAML for text after a block indicator.
_INLINE_BLOCK_CAUSE = build_invalid_finding(
    "did not find expected comment or line break", None
).message
# Text after a closing quote, and a backtick where a value starts.
_QUOTED_START = re.compile(r'"[^"\\]++" [A-Za-z](?:[^: ]|:(?=[^ ])| (?![ #]))*+')
_TEXT_AFTER_QUOTE_CAUSE = build_invalid_finding("did not find expected key", None).message
_BACKTICK_CAUSE = build_invalid_finding("found character that cannot start any token", None).message


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
    try:
        usual = _read_usual_lines(block)
        return _SimpleYamlReader(block).read() if usual is None else usual
    except _NotSimple:
        return None


def _read_usual_lines(  # noqa: C901, PLR0911, PLR0912, PLR0915 - a call per line is too slow
    block: str,
) -> SimpleYamlResult | None:
    """Read top-level values and maps one level deep; `None` if there is anything else.

    This covers nearly all public skills. A single function takes a third of the time of
    `_SimpleYamlReader`, which reads all simple YAML. Raises: _NotSimple.
    """
    lines = block.split("\n")
    if len(lines) > _MAX_LINES:
        return None
    del lines[-1]  # empty
    fields: Fields = {}
    findings: list[Finding] = []
    invalid_values: list[InvalidValue] = []
    cause = ""
    margin, target = 0, fields  # of the map that the line belongs to
    in_metadata = False
    opened: str | None = None  # a key whose map starts on the next line
    number = done = 0
    for line in lines:
        number += 1
        if number <= done:  # read with an earlier line
            continue
        start, _, text = line.partition(": ")
        known = _KEYS.get(start) or _learn_key(start)
        if known is None or (opened is not None and not known[0]):
            return None
        indent, key = known
        if not text:
            # Only `key:` has a known start and no text: the value is on the lines below.
            if indent or key in fields or line[-1] != ":":
                return None
            margin, target, in_metadata = 0, fields, False
            if number < len(lines) and lines[number].lstrip(" ")[:2] == "- ":
                fields[key], done = _read_list(lines, number)
            else:
                opened = key
            continue
        if opened is not None:
            margin, target = indent, {}
            fields[opened] = target
            in_metadata, opened = opened == "metadata", None
        elif indent != margin:
            if indent:
                return None
            margin, target, in_metadata = 0, fields, False
        if key in target or start[-1] == ":":
            return None
        first, last = text[0], text[-1]
        if first.isalpha():
            if last in " :" or " #" in text:
                return None
            if ": " in text:
                if margin:
                    return None
                invalid_values.append(InvalidValue(key, number, text))
                target[key] = text
            elif len(text) <= _LONGEST_TYPED_WORD and text.lower() in _TYPED_WORDS:
                label = _label(key, margin, in_metadata=in_metadata)
                target[key] = _read_plain_scalar(text, label, number, findings)
            else:
                target[key] = text
        elif first in "\"'":
            if last != first:
                if margin or last in " :" or _QUOTED_START.fullmatch(text) is None:
                    return None
                cause = _TEXT_AFTER_QUOTE_CAUSE
                invalid_values.append(InvalidValue(key, number, text))
                target[key] = text
            elif text.count(first) == 2 and "\\" not in text:  # noqa: PLR2004
                target[key] = text[1:-1]
            elif len(text) == 1:
                return None
            else:
                target[key] = _unquote(text)
        elif "0" <= first <= "9":
            if last in " :":
                return None
            label = _label(key, margin, in_metadata=in_metadata)
            target[key] = _read_plain_scalar(text, label, number, findings)
        elif first in "[{":
            if last not in "]}":
                return None
            _report_flow_style(number, findings)
            target[key] = _read_flow(
                text, number, findings, in_metadata=key == "metadata" and not margin
            )
        elif first in "|>" and _BLOCK_STYLE.fullmatch(text):
            target[key], done = _read_block_scalar(text, lines, number, margin)
        elif margin or last == " " or (first != "`" and _TEXT_AFTER_INDICATOR.match(text) is None):
            return None
        else:
            cause = _BACKTICK_CAUSE if first == "`" else _INLINE_BLOCK_CAUSE
            invalid_values.append(InvalidValue(key, number, text))
            target[key] = text
    # A key at the end has no value, and two kinds of errors need the message of the parser.
    if opened is not None or (cause and len(invalid_values) > 1):
        return None
    return tuple.__new__(
        SimpleYamlResult, (fields, tuple(findings), tuple(invalid_values), cause)
    )  # as `SimpleYamlResult(…)`, in half the time


# Indent and key by what precedes the value, `  key` or `key:`. Most skills have the same few keys.
_KEYS: dict[str, tuple[int, str]] = {}


def _learn_key(start: str) -> tuple[int, str] | None:
    name = start.lstrip(" ")
    indent = len(start) - len(name)
    name = name.removesuffix(":")
    if _KEY.fullmatch(name) is None or name.lower() in _TYPED_WORDS:
        return None
    if len(name) > _MAX_CACHED_KEY or indent > _MAX_INDENT:
        return None
    known = indent, intern(name)
    if len(_KEYS) < _MAX_CACHED_KEYS:
        _KEYS[start] = known
    return known


def _label(key: str, margin: int, *, in_metadata: bool) -> str:
    """Return the full name of a field if its value should be text, else ""."""
    if margin:
        return f"metadata.{key}" if in_metadata else ""
    return key if key in TEXT_FIELDS else ""


class _SimpleYamlReader:
    """Reads the lines of a block in order.

    `position` is the index of the next line. Since indexes start at 0, it is also the line number
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

    def read(self) -> SimpleYamlResult:
        """Read the block. Raises: _NotSimple."""
        if self.line_count > _MAX_LINES:
            raise _NotSimple
        fields = self.read_map("")
        if self.position < self.line_count:
            raise _NotSimple
        return SimpleYamlResult(fields, tuple(self.findings), tuple(self.invalid_values))

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
        """Read one value; it should be text if there is a `label`, its name in findings."""
        if not text:
            return self._read_nested(indent, as_text=key == "metadata" and not indent)
        if text[-1] == " ":
            text = text.rstrip(" ")
        first = text[0]
        if first.isalpha() and ": " not in text:
            return _read_plain_scalar(text, label, self.position, self.findings)
        if first in "|>":
            if _BLOCK_STYLE.fullmatch(text) is None:
                raise _NotSimple
            lines = self.block.split("\n")[:-1]
            value, self.position = _read_block_scalar(text, lines, self.position, len(indent))
            return value
        if not indent and self._record_if_invalid(key, text):
            return text
        if first in "[{":
            _report_flow_style(self.position, self.findings)
            in_metadata = key == "metadata" and not indent
            return _read_flow(text, self.position, self.findings, in_metadata=in_metadata)
        return _read_scalar(text, label, self.position, self.findings)

    def _record_if_invalid(self, key: str, text: str) -> bool:
        """Record the value if no YAML parser accepts it; return whether it was recorded."""
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
            value, self.position = _read_list(self.block.split("\n")[:-1], self.position)
            return value
        if len(spaces) <= len(indent):
            return None
        if not key or len(spaces) > _MAX_INDENT:
            raise _NotSimple
        return self.read_map(spaces, as_text=as_text)


def _read_list(lines: list[str], position: int) -> tuple[list[YamlValue], int]:
    """Read the `- item` lines from `position` on; also return the position after them."""
    first = lines[position]
    start = first[: len(first) - len(first.lstrip(" "))] + "- "
    items: list[YamlValue] = []
    while position < len(lines) and lines[position].startswith(start):
        items.append(_read_scalar(lines[position][len(start) :].strip(" "), "", position, []))
        position += 1
    rest = lines[position] if position < len(lines) else ""
    if rest and len(rest) - len(rest.lstrip(" ")) >= len(start) - 1:
        raise _NotSimple  # an item goes on
    return items, position


def _read_block_scalar(style: str, lines: list[str], position: int, margin: int) -> tuple[str, int]:
    """Read the lines of a block scalar; also return the position after them."""
    first = lines[position] if position < len(lines) else ""
    start = first[: len(first) - len(first.lstrip(" "))]
    if len(start) <= margin:
        raise _NotSimple
    texts = []
    while position < len(lines) and lines[position].startswith(start):
        text = lines[position][len(start) :]
        if not text or text[0] == " " or text[-1] == " ":
            raise _NotSimple
        texts.append(text)
        position += 1
    rest = lines[position] if position < len(lines) else "end"
    if not rest or len(rest) - len(rest.lstrip(" ")) > margin:
        raise _NotSimple  # the value goes on after a blank line, or is indented unevenly
    joined = (" " if style[0] == ">" else "\n").join(texts)
    return joined if style[-1] == "-" else joined + "\n", position


def _report_flow_style(line: int, findings: list[Finding]) -> None:
    if not any(finding.code is Code.YAML_FLOW for finding in findings):
        findings.append(build_flow_style_finding(line))


def _read_flow(text: str, line: int, findings: list[Finding], *, in_metadata: bool) -> YamlValue:
    """Read a flow list or map whose items are plain, or quoted without escapes."""
    match = _FLOW.fullmatch(text)
    if match is None:
        raise _NotSimple
    inner: str = match["list"] if match["map"] is None else match["map"]
    items = [item.strip(" ") for item in inner.split(",")] if inner.strip(" ") else []
    if len(items) > _MAX_FLOW_ITEMS:
        raise _NotSimple
    if match["map"] is None:
        return [_read_flow_scalar(item, "", line, findings) for item in items]
    fields: Fields = {}
    for item in items:
        key, colon, value = item.partition(": ")
        if not colon or key in fields or _KEY.fullmatch(key) is None:
            raise _NotSimple
        if key.lower() in _TYPED_WORDS:
            raise _NotSimple
        label = f"metadata.{key}" if in_metadata else ""
        fields[intern(key)] = _read_flow_scalar(value.strip(" "), label, line, findings)
    return fields


def _read_flow_scalar(text: str, label: str, line: int, findings: list[Finding]) -> YamlValue:
    is_quoted = len(text) > 2 and text[0] in "\"'" and text[0] == text[-1]  # noqa: PLR2004
    inner = text[1:-1] if is_quoted else text
    if _FLOW_ITEM.fullmatch(inner) is None:
        raise _NotSimple
    return inner if is_quoted else _read_scalar(text, label, line, findings)


def _read_scalar(text: str, label: str, line: int, findings: list[Finding]) -> YamlValue:
    first = text[:1]
    if first in ('"', "'"):
        return _unquote(text)
    if first.isalpha() or "0" <= first <= "9":
        return _read_plain_scalar(text, label, line, findings)
    raise _NotSimple


def _read_plain_scalar(text: str, label: str, line: int, findings: list[Finding]) -> YamlValue:
    """Read a plain scalar; it should be text if there is a `label`."""
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
            findings.append(build_not_text_finding(label, text, line))
    return text


def _unquote(text: str) -> str:
    pattern = _DOUBLE_QUOTED if text[0] == '"' else _SINGLE_QUOTED
    match = pattern.fullmatch(text)
    if match is None:
        raise _NotSimple
    inner: str = match[1]
    return _ESCAPED.sub(r"\1", inner) if text[0] == '"' else inner.replace("''", "'")
