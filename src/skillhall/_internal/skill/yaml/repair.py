"""One lenient pass over frontmatter that YAML refused: top-level `key: value` lines as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import YamlReadError, read_full_yaml
from skillhall._internal.skill.yaml.result import (
    InvalidValue,
    YamlResult,
    build_duplicate_key_finding,
    build_quote_hint,
    build_repaired_finding,
    explain_invalid_value,
    shift_lines,
)

if TYPE_CHECKING:
    from skillhall._internal.skill.yaml.values import Fields

_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK_STYLE = re.compile(r"[|>][-+0-9]*")
_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
_MAX_ENTRIES = 500


class _FieldEntry(NamedTuple):
    key: str
    lines: list[str]
    value_lines: list[str]
    line: int

    @property
    def is_obviously_invalid(self) -> bool:
        """Whether no YAML reader takes this entry, which a glance can tell."""
        first, *rest = self.value_lines
        text = first.rstrip(" ")
        return (
            bool(text) and not any(map(str.strip, rest)) and explain_invalid_value(text) is not None
        )

    def to_text(self) -> str:
        first, *rest = self.value_lines
        kept = rest if _BLOCK_STYLE.fullmatch(first) else self.value_lines
        return " ".join(part for line in kept if (part := line.strip()))


def repair_yaml(block: str, error: YamlReadError) -> YamlResult:
    """The fields of `block`, each broken one as plain text. Raises: YamlRefused."""
    entries = _split_entries(block)
    if not 0 < len(entries) <= _MAX_ENTRIES:
        raise error
    fields: Fields = {}
    broken: list[_FieldEntry] = []
    noticed: dict[tuple[Code, str], Finding] = {}
    for entry in entries:
        alone = _read_entry(entry)
        if entry.key in fields:
            noticed[Code.DUPLICATE_KEY, entry.key] = build_duplicate_key_finding(
                entry.key, entry.line
            )
        if alone is None:
            broken.append(entry)
            fields[entry.key] = entry.to_text()
        elif entry.key not in alone.fields:
            raise error
        else:
            fields[entry.key] = alone.fields[entry.key]
            for found in shift_lines(alone.findings, entry.line - 1):
                # Flow style is told once, as the other readers do.
                about = "" if found.code is Code.YAML_FLOW else found.message
                noticed.setdefault((found.code, about), found)
    return YamlResult(
        fields, [_build_entries_repaired_finding(error.finding, broken), *noticed.values()]
    )


def locate_fields_leniently(block: str) -> dict[str, tuple[int, int, int]]:
    """Offsets of each top-level `key: value` entry: key start, key end, value end."""
    starts = [0, *(match.end() for match in _LINE_BREAK.finditer(block))]
    found = {}
    for entry in _split_entries(_LINE_BREAK.sub("\n", block)):
        start = starts[entry.line - 1]
        end = starts[min(entry.line - 1 + len(entry.lines), len(starts) - 1)]
        found[entry.key] = (start, start + len(entry.key), end)
    return found


def _read_entry(entry: _FieldEntry) -> YamlResult | None:
    """What one entry says by itself; `None` if its syntax is wrong. Raises: YamlRefused."""
    if entry.is_obviously_invalid:
        return None
    text = "\n".join(entry.lines) + "\n"
    plain = read_simple_yaml(text)
    if plain is not None and not plain.invalid_values:
        return YamlResult(plain.fields, [*plain.findings])
    try:
        return read_full_yaml(text)
    except YamlReadError as refusal:
        if not refusal.is_repairable:
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


def _build_entries_repaired_finding(cause: Finding, entries: list[_FieldEntry]) -> Finding:
    if not entries:
        return Finding(Code.YAML_REPAIRED, cause.message, cause.line, cause.hint)
    if all(entry.is_obviously_invalid for entry in entries):
        return build_repaired_finding(
            [InvalidValue(entry.key, entry.line, entry.to_text()) for entry in entries]
        )
    entry = entries[0]
    return Finding(
        Code.YAML_REPAIRED,
        f"{cause.message}; {', '.join(repr(e.key) for e in entries)} was read as plain text",
        entry.line,
        build_quote_hint(entry.key, entry.to_text()),
    )
