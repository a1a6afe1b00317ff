"""What every YAML reader gives, and the findings they must word alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import Fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What some YAML version reads as something other than text.
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
    """What a block said: its fields, and what was noticed on the way (lines count from 1)."""

    fields: Fields
    findings: list[Finding]


class InvalidValue(NamedTuple):
    """A field whose one-line value no YAML reader takes; it is read as plain text."""

    key: str
    line: int
    text: str


def build_flow_style_finding(line: int) -> Finding:
    """The finding for the first use of flow style."""
    return Finding(Code.YAML_FLOW, "the frontmatter uses flow style ([…] or {…})", line)


def build_not_text_finding(label: str, text: str, line: int) -> Finding:
    """The finding for a value that is more than text to YAML, where text is expected."""
    return Finding(
        Code.NOT_TEXT,
        f"{label!r} looks like a number, date or yes/no to YAML; read as {text!r}",
        line,
        f"quote it: {label.rpartition('.')[2]}: {text!r}",
    )


def build_duplicate_key_finding(key: str, line: int) -> Finding:
    """The finding for a key that stands more than once."""
    return Finding(
        Code.DUPLICATE_KEY,
        f"{key!r} stands more than once; the last value wins",
        line,
        "remove one of them",
    )


def shift_lines(findings: Iterable[Finding], offset: int) -> list[Finding]:
    """The findings of a part, with lines counted from the top of the whole."""
    return [
        Finding(found.code, found.message, (found.line or 1) + offset, found.hint)
        for found in findings
    ]


def explain_invalid_value(text: str) -> str | None:
    """Why no YAML reader takes this one-line value, if a glance can tell."""
    if text[0] in "\"'":
        return "opens a quote that is never closed" if text.count(text[0]) == 1 else None
    if text[0] in "[{":
        is_open = "]" not in text and "}" not in text
        return "opens a bracket that is never closed" if is_open else None
    if text[0].isalpha() and ": " in text and " #" not in text and text[-1] != ":":
        return "holds ': ' outside quotes, which is not YAML"
    return None


def build_repaired_finding(invalid_values: Sequence[InvalidValue]) -> Finding:
    """The finding for fields that were read as plain text."""
    reasons = dict.fromkeys(explain_invalid_value(fault.text) for fault in invalid_values)
    reason = next(iter(reasons)) if len(reasons) == 1 else "cannot be read as YAML"
    names = ", ".join(repr(fault.key) for fault in invalid_values)
    return Finding(
        Code.YAML_REPAIRED,
        f"{names} {reason}; it was read as plain text",
        invalid_values[0].line,
        build_quote_hint(invalid_values[0].key, invalid_values[0].text),
    )


def build_quote_hint(key: str, value: str) -> str:
    """What to write instead of a value that is not YAML."""
    from skillhall._internal.skill.yaml.quoting import quote_scalar  # noqa: PLC0415 - which asks the fast reader

    shown = quote_scalar(
        value if len(value) <= _MAX_HINT_LENGTH else value[:_MAX_HINT_LENGTH] + "…"
    )
    return f"quote the value: {key}: {shown}"
