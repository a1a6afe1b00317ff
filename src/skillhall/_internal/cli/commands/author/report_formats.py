"""Findings in words: for people, for GitHub and for tools that read SARIF."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.policy.effects import Effect
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.finding import Finding

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "note"}
_GITHUB_COMMANDS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "notice"}


class StyleFunction(Protocol):
    """Something that may colour a word by what it means."""

    def __call__(self, text: str, effect: Effect) -> str:
        """The text, coloured or not."""


def style_plain(text: str, effect: Effect) -> str:
    """No colours."""
    del effect
    return text


_COLORS = {Effect.REJECT: "\x1b[1;31m", Effect.WARN: "\x1b[33m", Effect.ACCEPT: "\x1b[2m"}


def style_colored(text: str, effect: Effect) -> str:
    """Colours for a terminal; `text` is clean already."""
    return f"{_COLORS[effect]}{text}\x1b[0m"


def format_text(
    findings: Iterable[JudgedFinding], working_directory: str, style: StyleFunction = style_plain
) -> Iterator[str]:
    """Lines as a compiler writes them: path, line, effect, code, message, and a hint below."""
    for found, effect in findings:
        where = sanitize_line(shorten_path(found.path, working_directory))
        line = f":{found.line}" if found.line is not None else ""
        label = style(f"{effect}[{found.code}]", effect)
        yield f"{where}{line}: {label}: {sanitize_line(found.message)}"
        if found.hint:
            yield f"    hint: {sanitize_line(found.hint)}"


def format_github(findings: Iterable[JudgedFinding], working_directory: str) -> Iterator[str]:
    """Workflow commands: each becomes a note beside its line of the change."""
    for found, effect in findings:
        properties = {
            "file": shorten_path(found.path, working_directory),
            "line": str(found.line or 1),
            "title": found.code.value,
        }
        told = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
        yield f"::{_GITHUB_COMMANDS[effect]} {told}::{_escape_message(_format_with_hint(found))}"


class SarifResult(NamedTuple):
    """One result of a SARIF log."""

    finding: Finding
    level: str  # error, warning or note
    severity: str = ""  # of a security problem, from 0.0 to 10.0
    fingerprint: str = ""  # what a result is known by when lines move


def to_sarif_results(findings: Iterable[JudgedFinding]) -> list[SarifResult]:
    """Return the results for findings, with the level that their effect has."""
    return [SarifResult(found, _SARIF_LEVELS[effect]) for found, effect in findings]


def build_sarif(
    results: Iterable[SarifResult], working_directory: str, version: str
) -> dict[str, object]:
    """Return one SARIF 2.1.0 log."""
    listed = list(results)
    rules = {one.finding.code: _build_sarif_rule(one) for one in listed}
    codes = sorted(rules)
    entries = [
        _build_sarif_result(one, codes.index(one.finding.code), working_directory) for one in listed
    ]
    driver = {"name": "skillhall", "version": version, "rules": [rules[code] for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": entries}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _build_sarif_rule(result: SarifResult) -> dict[str, object]:
    code = result.finding.code
    rule: dict[str, object] = {"id": code, "shortDescription": {"text": CODE_DESCRIPTIONS[code]}}
    if result.severity:
        rule["properties"] = {"tags": ["security"], "security-severity": result.severity}
    return rule


def _build_sarif_result(
    result: SarifResult, index: int, working_directory: str
) -> dict[str, object]:
    found = result.finding
    entry: dict[str, object] = {
        "ruleId": found.code.value,
        "ruleIndex": index,
        "level": result.level,
        "message": {"text": sanitize_line(_format_with_hint(found))},
        "locations": [_build_sarif_location(found, working_directory)],
    }
    if result.fingerprint:
        entry["partialFingerprints"] = {"skillhall/v1": result.fingerprint}
    return entry


def shorten_path(path: str, working_directory: str) -> str:
    """The path as short as it can be: relative below the working directory, else absolute."""
    inside = path.removeprefix(working_directory.rstrip(os.sep) + os.sep)
    return inside or path


def _format_with_hint(finding: Finding) -> str:
    return f"{finding.message} (hint: {finding.hint})" if finding.hint else finding.message


def _escape_message(text: str) -> str:
    return sanitize_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")


def _build_sarif_location(finding: Finding, working_directory: str) -> dict[str, object]:
    from urllib.parse import quote

    path = shorten_path(finding.path, working_directory).replace(os.sep, "/")
    uri = quote(path, errors="replace")
    if path.startswith("/"):
        uri = f"file://{uri}"
    region = {"startLine": finding.line or 1}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
