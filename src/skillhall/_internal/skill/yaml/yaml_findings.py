"""Result, error, limits and findings that all YAML readers share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import Fields

# Plain scalars that are not text in some version of YAML.
TYPED_SCALAR = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)"  # integers
    r"|[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\."  # floats
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # base 60, such as 1:30:00
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"  # dates
    r"|(?i:true|false|yes|no|on|off)"
)
MAX_DEPTH = 20  # nesting levels
MAX_NODES = 1000  # scalars and collections together
STR_TAG, SEQ_TAG, MAP_TAG = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
PLAIN_TAGS = (STR_TAG, SEQ_TAG, MAP_TAG)  # of nodes without an explicit tag


class YamlReadError(Exception):
    """A YAML block cannot be read; it is repairable if only its syntax is wrong."""

    def __init__(self, finding: Finding, *, is_repairable: bool = False) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.is_repairable = is_repairable


class YamlResult(NamedTuple):
    """The fields of a block and its findings; lines are numbered from 1."""

    fields: Fields
    findings: list[Finding]


class InvalidValue(NamedTuple):
    """A field whose value is not valid YAML and is read as plain text."""

    key: str
    line: int
    text: str


def build_flow_style_finding(line: int) -> Finding:
    """Build the finding for the first use of flow style."""
    return Finding(Code.YAML_FLOW, "the frontmatter uses flow style ([…] or {…})", line)


def build_not_text_finding(label: str, text: str, line: int) -> Finding:
    """Build the finding for a typed scalar where text is expected."""
    return Finding(
        Code.NOT_TEXT,
        f"{label!r} is a number, date or boolean in YAML; it was read as the text {text!r}",
        line,
        f"quote it: {label.rpartition('.')[2]}: {text!r}",
    )


def build_duplicate_key_finding(key: str, line: int) -> Finding:
    """Build the finding for a duplicate key."""
    message = f"duplicate key {key!r}; the last value is used"
    return Finding(Code.DUPLICATE_KEY, message, line, "remove one of them")


def build_depth_finding(line: int) -> Finding:
    """Build the finding for nesting over the limit."""
    message = f"the frontmatter is nested deeper than {MAX_DEPTH} levels"
    return Finding(Code.YAML_DEPTH, message, line, "flatten it")


def build_invalid_finding(problem: str, line: int | None) -> Finding:
    """Build the finding for a syntax error."""
    message = f"the frontmatter is not valid YAML: {problem}"
    return Finding(
        Code.YAML_INVALID, message, line, "quote values that contain ': ', '#' or quotes"
    )


def shift_lines(findings: Iterable[Finding], offset: int) -> list[Finding]:
    """Add `offset` to the lines of the findings, to count from the top of the file."""
    return [
        Finding(code, message, (line or 1) + offset, hint)
        for code, message, line, hint, _, _ in findings
    ]


def explain_invalid_value(text: str) -> str | None:
    """Return why a one-line value is not YAML; `None` if it has no common error."""
    if text[0] in "\"'":
        return "has an unclosed quote" if text.count(text[0]) == 1 else None
    if text[0] in "[{":
        is_open = "]" not in text and "}" not in text
        return "has an unclosed bracket" if is_open else None
    if text[0].isalpha() and ": " in text and " #" not in text and text[-1] != ":":
        return "contains ': ' outside quotes, which is not valid YAML"
    return None
