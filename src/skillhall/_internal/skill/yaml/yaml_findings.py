"""The result type and the findings that all YAML readers share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import Fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Plain scalars that are not text in some version of YAML.
TYPED_SCALAR = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)"  # integers
    r"|[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\."  # floats
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # times in base sixty
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"  # dates
    r"|(?i:true|false|yes|no|on|off)"
)
_MAX_HINT_LENGTH = 60  # characters of a value that a hint repeats


class YamlResult(NamedTuple):
    """The fields of a block and its findings; lines count from 1."""

    fields: Fields
    findings: list[Finding]


class InvalidValue(NamedTuple):
    """A field whose one-line value is not YAML and is read as plain text."""

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
        f"{label!r} is a number, date or boolean in YAML; read as {text!r}",
        line,
        f"quote it: {label.rpartition('.')[2]}: {text!r}",
    )


def build_duplicate_key_finding(key: str, line: int) -> Finding:
    """Build the finding for a duplicate key."""
    message = f"duplicate key {key!r}; the last value is used"
    return Finding(Code.DUPLICATE_KEY, message, line, "remove one of them")


def shift_lines(findings: Iterable[Finding], offset: int) -> list[Finding]:
    """Add `offset` to the lines of the findings, to count from the top of the file."""
    return [Finding(f.code, f.message, (f.line or 1) + offset, f.hint) for f in findings]


def explain_invalid_value(text: str) -> str | None:
    """Return why a one-line value is not YAML, for the most common errors."""
    if text[0] in "\"'":
        return "has an unclosed quote" if text.count(text[0]) == 1 else None
    if text[0] in "[{":
        is_open = "]" not in text and "}" not in text
        return "has an unclosed bracket" if is_open else None
    if text[0].isalpha() and ": " in text and " #" not in text and text[-1] != ":":
        return "contains ': ' outside quotes, which is not valid YAML"
    return None


def build_repaired_finding(invalid_values: Sequence[InvalidValue]) -> Finding:
    """Build the finding for fields that were read as plain text."""
    reasons = dict.fromkeys(explain_invalid_value(value.text) for value in invalid_values)
    reason = next(iter(reasons)) if len(reasons) == 1 else "are not valid YAML"
    names = ", ".join(repr(value.key) for value in invalid_values)
    return Finding(
        Code.YAML_REPAIRED,
        f"{names} {reason}; read as plain text",
        invalid_values[0].line,
        build_quote_hint(invalid_values[0].key, invalid_values[0].text),
    )


def build_quote_hint(key: str, value: str) -> str:
    """Build the hint to quote a value."""
    # Imported here, since quoting imports the fast reader, which imports this module.
    from skillhall._internal.skill.yaml.quoting import quote_scalar  # noqa: PLC0415

    shown = value if len(value) <= _MAX_HINT_LENGTH else value[:_MAX_HINT_LENGTH] + "…"
    return f"quote the value: {key}: {quote_scalar(shown)}"
