"""Findings in words: for people, for GitHub and for tools that read SARIF."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.cli.terminal import clean
from skillhall._internal.policy.effects import Effect
from skillhall._internal.skill.code_descriptions import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.finding import Finding

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "note"}
_COMMANDS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "notice"}


class Styled(Protocol):
    """Something that may colour a word by what it means."""

    def __call__(self, text: str, effect: Effect) -> str:
        """The text, coloured or not."""


def plain(text: str, effect: Effect) -> str:
    """No colours."""
    del effect
    return text


_COLOURS = {Effect.REJECT: "\x1b[1;31m", Effect.WARN: "\x1b[33m", Effect.ACCEPT: "\x1b[2m"}


def coloured(text: str, effect: Effect) -> str:
    """Colours for a terminal; `text` is clean already."""
    return f"{_COLOURS[effect]}{text}\x1b[0m"


def as_text(findings: Iterable[Judged], base: str, style: Styled = plain) -> Iterator[str]:
    """Lines as a compiler writes them: path, line, effect, code, message, and a hint below."""
    for found, effect in findings:
        where = clean(shown_path(found.path, base))
        line = f":{found.line}" if found.line is not None else ""
        label = style(f"{effect}[{found.code}]", effect)
        yield f"{where}{line}: {label}: {clean(found.message)}"
        if found.hint:
            yield f"    hint: {clean(found.hint)}"


def as_github(findings: Iterable[Judged], base: str) -> Iterator[str]:
    """Workflow commands: each becomes a note beside its line of the change."""
    for found, effect in findings:
        properties = {
            "file": shown_path(found.path, base),
            "line": str(found.line or 1),
            "title": found.code.value,
        }
        told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{_COMMANDS[effect]} {told}::{_message(_with_hint(found))}"


class SarifResult(NamedTuple):
    """One result of a SARIF log."""

    finding: Finding
    level: str  # error, warning or note
    severity: str = ""  # of a security problem, from 0.0 to 10.0
    fingerprint: str = ""  # what a result is known by when lines move


def judged_results(findings: Iterable[Judged]) -> list[SarifResult]:
    """Return the results for findings, with the level that their effect has."""
    return [SarifResult(found, _LEVELS[effect]) for found, effect in findings]


def as_sarif(results: Iterable[SarifResult], base: str, version: str) -> dict[str, object]:
    """Return one SARIF 2.1.0 log."""
    listed = list(results)
    rules = {one.finding.code: _sarif_rule(one) for one in listed}
    codes = sorted(rules)
    entries = [_sarif_result(one, codes.index(one.finding.code), base) for one in listed]
    driver = {"name": "skillhall", "version": version, "rules": [rules[code] for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": entries}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(result: SarifResult) -> dict[str, object]:
    code = result.finding.code
    rule: dict[str, object] = {"id": code, "shortDescription": {"text": MEANINGS[code]}}
    if result.severity:
        rule["properties"] = {"tags": ["security"], "security-severity": result.severity}
    return rule


def _sarif_result(result: SarifResult, index: int, base: str) -> dict[str, object]:
    found = result.finding
    entry: dict[str, object] = {
        "ruleId": found.code.value,
        "ruleIndex": index,
        "level": result.level,
        "message": {"text": clean(_with_hint(found))},
        "locations": [_location(found, base)],
    }
    if result.fingerprint:
        entry["partialFingerprints"] = {"skillhall/v1": result.fingerprint}
    return entry


def shown_path(path: str, base: str) -> str:
    """The path as short as it can be: relative below the working directory, else absolute."""
    inside = path.removeprefix(base.rstrip(os.sep) + os.sep)
    return inside or path


def _with_hint(found: Finding) -> str:
    return f"{found.message} (hint: {found.hint})" if found.hint else found.message


def _message(text: str) -> str:
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _location(found: Finding, base: str) -> dict[str, object]:
    from urllib.parse import quote

    path = shown_path(found.path, base).replace(os.sep, "/")
    uri = quote(path, errors="replace")
    if path.startswith("/"):
        uri = f"file://{uri}"
    region = {"startLine": found.line or 1}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
