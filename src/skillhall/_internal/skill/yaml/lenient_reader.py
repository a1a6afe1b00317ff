"""Lenient reader: fast reader, then full reader, then one repair.

The repair reads each top-level entry on its own; the value of a broken entry is read as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from sys import intern
from typing import NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import find_control_character, read_full_yaml
from skillhall._internal.skill.yaml.quoting import quote_scalar
from skillhall._internal.skill.yaml.values import Fields
from skillhall._internal.skill.yaml.yaml_findings import (
    InvalidValue,
    YamlReadError,
    YamlResult,
    build_duplicate_key_finding,
    explain_invalid_value,
    shift_lines,
)

_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK_STYLE = re.compile(r"[|>][-+0-9]*")
_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
_MAX_ENTRIES = 500  # each one is parsed separately
_MAX_HINT_LENGTH = 60  # characters of a value that a hint repeats


class _FieldEntry(NamedTuple):
    key: str
    lines: list[str]
    value_lines: list[str]
    line: int

    @property
    def is_obviously_invalid(self) -> bool:
        """Whether the value is one line with one of the most common errors."""
        first, *rest = self.value_lines
        text = first.rstrip(" ")
        if not text or any(map(str.strip, rest)):
            return False
        return explain_invalid_value(text) is not None

    def to_text(self) -> str:
        first, *rest = self.value_lines
        lines = rest if _BLOCK_STYLE.fullmatch(first) else self.value_lines
        return " ".join(part for line in lines if (part := line.strip()))


def read_fields(block: str) -> YamlResult:
    """Read the fields of a YAML block. Raises: YamlReadError."""
    simple = read_simple_yaml(block)
    if simple is not None:
        fields, findings, invalid_values, cause = simple
        if invalid_values:
            findings = (build_repaired_finding(invalid_values, cause), *findings)
        return tuple.__new__(YamlResult, (fields, [*findings]))  # as `YamlResult(…)`, faster
    try:
        result = read_full_yaml(block)
    except YamlReadError as error:
        if not error.is_repairable:
            raise
        result = repair_yaml(block, error)
    # Literal control characters were rejected above; these come from escapes such as "\x07".
    for key, value in result.fields.items() if "\\" in block else ():
        character = find_control_character(key) or find_control_character(value)
        if character is not None:
            message = f"{key!r} contains the control character {character!r}"
            raise YamlReadError(Finding(Code.CONTROL_CHARACTER, message, hint="remove the escape"))
    return result


def repair_yaml(block: str, error: YamlReadError) -> YamlResult:
    """Read the fields of `block`, broken ones as plain text. Raises: YamlReadError."""
    entries = _split_entries(block)
    if not 0 < len(entries) <= _MAX_ENTRIES:
        raise error
    fields: Fields = {}
    broken: list[_FieldEntry] = []
    findings: dict[tuple[Code, str], Finding] = {}
    for entry in entries:
        key, result = entry.key, _read_entry(entry)
        if key in fields:
            findings[Code.DUPLICATE_KEY, key] = build_duplicate_key_finding(key, entry.line)
        if result is None:
            broken.append(entry)
            fields[key] = entry.to_text()
        elif key not in result.fields:
            raise error
        else:
            fields[key] = result.fields[key]
            for finding in shift_lines(result.findings, entry.line - 1):
                # Flow style is reported once per block, as by the other readers.
                subject = "" if finding.code is Code.YAML_FLOW else finding.message
                findings.setdefault((finding.code, subject), finding)
    invalid = [InvalidValue(entry.key, entry.line, entry.to_text()) for entry in broken]
    cause = error.finding
    if not invalid:
        repaired = Finding(Code.YAML_REPAIRED, cause.message, cause.line, cause.hint)
    elif all(entry.is_obviously_invalid for entry in broken):
        repaired = build_repaired_finding(invalid)
    else:
        repaired = build_repaired_finding(invalid, cause.message)
    return YamlResult(fields, [repaired, *findings.values()])


def build_repaired_finding(invalid: Sequence[InvalidValue], cause: str = "") -> Finding:
    """Build the finding for fields that were read as plain text."""
    names = ", ".join(repr(value.key) for value in invalid)
    is_single = len(invalid) == 1
    if cause:
        message = f"{cause}; {names} {'was' if is_single else 'were'} read as plain text"
    elif is_single:
        reason = explain_invalid_value(invalid[0].text)
        message = f"{names} {reason}; it was read as plain text"
    else:
        reasons = dict.fromkeys(explain_invalid_value(value.text) for value in invalid)
        reason = f": each {next(iter(reasons))}" if len(reasons) == 1 else " are not valid YAML"
        message = f"{names}{reason}; they were read as plain text"
    key, line, value = invalid[0]
    shown = value if len(value) <= _MAX_HINT_LENGTH else value[:_MAX_HINT_LENGTH] + "…"
    hint = f"quote the value: {key}: {quote_scalar(shown)}"
    # In a large registry, thousands of skills have one of a few messages.
    return Finding(Code.YAML_REPAIRED, intern(message), line, hint)


def locate_fields_leniently(block: str) -> dict[str, tuple[int, int, int]]:
    """Locate each top-level `key: value` entry: key start, key end, value end."""
    starts = [0, *(match.end() for match in _LINE_BREAK.finditer(block))]
    offsets = {}
    for entry in _split_entries(_LINE_BREAK.sub("\n", block)):
        start = starts[entry.line - 1]
        end = starts[min(entry.line - 1 + len(entry.lines), len(starts) - 1)]
        offsets[entry.key] = (start, start + len(entry.key), end)
    return offsets


def _read_entry(entry: _FieldEntry) -> YamlResult | None:
    """Read one entry alone; `None` if its syntax is wrong. Raises: YamlReadError."""
    if entry.is_obviously_invalid:
        return None
    text = "\n".join(entry.lines) + "\n"
    simple = read_simple_yaml(text)
    if simple is not None and not simple.invalid_values:
        return YamlResult(simple.fields, [*simple.findings])
    try:
        return read_full_yaml(text)
    except YamlReadError as error:
        if not error.is_repairable:
            raise
        return None


def _split_entries(block: str) -> list[_FieldEntry]:
    entries: list[_FieldEntry] = []
    for number, line in enumerate(block.split("\n"), start=1):
        if line.startswith("#"):
            continue
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries.append(_FieldEntry(match[1], [line], [match[2] or ""], number))
        elif entries:
            entries[-1].lines.append(line)
            entries[-1].value_lines.append(line)
        elif line.strip():
            return []
    return entries
