"""One lenient pass over frontmatter that YAML refused: top-level `key: value` lines as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_plain_yaml
from skillhall._internal.skill.yaml.full_reader import YamlRefused, read_careful_yaml
from skillhall._internal.skill.yaml.result import (
    Fault,
    Reading,
    duplicate_key,
    fault_in,
    moved,
    quote_hint,
    repaired,
)

if TYPE_CHECKING:
    from skillhall._internal.skill.yaml.values import Fields

_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK_STYLE = re.compile(r"[|>][-+0-9]*")
_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
_MAX_ENTRIES = 500


class _Entry(NamedTuple):
    key: str
    lines: list[str]
    text: list[str]
    line: int

    @property
    def is_surely_broken(self) -> bool:
        """Whether no YAML reader takes this entry, which a glance can tell."""
        first, *rest = self.text
        text = first.rstrip(" ")
        return bool(text) and not any(map(str.strip, rest)) and fault_in(text) is not None

    def as_text(self) -> str:
        first, *rest = self.text
        kept = rest if _BLOCK_STYLE.fullmatch(first) else self.text
        return " ".join(part for line in kept if (part := line.strip()))


def repair_yaml(block: str, refusal: YamlRefused) -> Reading:
    """The fields of `block`, each broken one as plain text. Raises: YamlRefused."""
    entries = _entries(block)
    if not 0 < len(entries) <= _MAX_ENTRIES:
        raise refusal
    fields: Fields = {}
    broken: list[_Entry] = []
    noticed: dict[tuple[Code, str], Finding] = {}
    for entry in entries:
        alone = _read_alone(entry)
        if entry.key in fields:
            noticed[Code.DUPLICATE_KEY, entry.key] = duplicate_key(entry.key, entry.line)
        if alone is None:
            broken.append(entry)
            fields[entry.key] = entry.as_text()
        elif entry.key not in alone.fields:
            raise refusal
        else:
            fields[entry.key] = alone.fields[entry.key]
            for found in moved(alone.findings, entry.line - 1):
                # Flow style is told once, as the other readers do.
                about = "" if found.code is Code.YAML_FLOW else found.message
                noticed.setdefault((found.code, about), found)
    return Reading(fields, [_repaired(refusal.finding, broken), *noticed.values()])


def locate_entries(block: str) -> dict[str, tuple[int, int, int]]:
    """Offsets of each top-level `key: value` entry: key start, key end, value end."""
    starts = [0, *(match.end() for match in _LINE_BREAK.finditer(block))]
    found = {}
    for entry in _entries(_LINE_BREAK.sub("\n", block)):
        start = starts[entry.line - 1]
        end = starts[min(entry.line - 1 + len(entry.lines), len(starts) - 1)]
        found[entry.key] = (start, start + len(entry.key), end)
    return found


def _read_alone(entry: _Entry) -> Reading | None:
    """What one entry says by itself; `None` if its syntax is wrong. Raises: YamlRefused."""
    if entry.is_surely_broken:
        return None
    text = "\n".join(entry.lines) + "\n"
    plain = read_plain_yaml(text)
    if plain is not None and not plain.faults:
        return Reading(plain.fields, [*plain.findings])
    try:
        return read_careful_yaml(text)
    except YamlRefused as refusal:
        if not refusal.repairable:
            raise
        return None


def _entries(block: str) -> list[_Entry]:
    entries: list[_Entry] = []
    for number, line in enumerate(block.split("\n"), start=1):
        if line.startswith("#"):
            continue
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries.append(_Entry(match[1], [line], [match[2] or ""], number))
        elif entries:
            entries[-1].lines.append(line)
            entries[-1].text.append(line)
        elif line.strip():
            return []
    return entries


def _repaired(refusal: Finding, broken: list[_Entry]) -> Finding:
    if not broken:
        return Finding(Code.YAML_REPAIRED, refusal.message, refusal.line, refusal.hint)
    if all(entry.is_surely_broken for entry in broken):
        return repaired([Fault(entry.key, entry.line, entry.as_text()) for entry in broken])
    entry = broken[0]
    return Finding(
        Code.YAML_REPAIRED,
        f"{refusal.message}; {', '.join(repr(e.key) for e in broken)} was read as plain text",
        entry.line,
        quote_hint(entry.key, entry.as_text()),
    )
