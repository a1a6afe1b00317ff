"""Output formats for findings: text, GitHub workflow commands and SARIF."""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.hints import find_finding_docs
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Finding
from skillhall._internal.skill.risks.tiers import Tier
from skillhall._version import VERSION

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# Security severity of each tier, as GitHub code scanning shows it.
SECURITY_SEVERITIES = {Tier.HIGH: "8.0", Tier.MEDIUM: "5.0", Tier.INFO: "2.0"}
_SARIF_LEVELS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "note"}
_GITHUB_COMMANDS = {Effect.REJECT: "error", Effect.WARN: "warning", Effect.ACCEPT: "notice"}
_COLORS = {Effect.REJECT: "\x1b[1;31m", Effect.WARN: "\x1b[33m", Effect.ACCEPT: "\x1b[2m"}


def format_text(
    findings: Iterable[JudgedFinding], working_directory: str, *, color: bool = False
) -> Iterator[str]:
    """Yield a line per finding, in the format of compilers, followed by its hint."""
    for finding, effect in findings:
        label = f"{effect}[{finding.code}]"
        if color:
            label = f"{_COLORS[effect]}{label}\x1b[0m"
        where = format_location(finding, working_directory)
        yield f"{where}: {label}: {sanitize_line(finding.message)}"
        if finding.hint:
            yield f"    hint: {sanitize_line(finding.hint)}"


def format_github(findings: Iterable[JudgedFinding], working_directory: str) -> Iterator[str]:
    """Yield workflow commands, which GitHub shows as annotations on the lines."""
    for finding, effect in findings:
        properties = {
            "file": shorten_path(finding.path, working_directory),
            "line": str(finding.line or 1),
            "title": finding.code.value,
        }
        escaped = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
        message = _escape_message(_format_with_hint(finding))
        yield f"::{_GITHUB_COMMANDS[effect]} {escaped}::{message}"


class SarifResult(NamedTuple):
    """A result in a SARIF log."""

    finding: Finding
    level: str  # error, warning or note
    severity: str = ""  # security severity from 0.0 to 10.0
    fingerprint: str = ""  # still identifies the result after its line has moved


def to_sarif_results(findings: Iterable[JudgedFinding]) -> list[SarifResult]:
    """Return the findings as SARIF results; the effect determines the level."""
    return [SarifResult(finding, _SARIF_LEVELS[effect]) for finding, effect in findings]


def build_sarif(results: Iterable[SarifResult], working_directory: str) -> dict[str, object]:
    """Return the results as one SARIF 2.1.0 log."""
    all_results = list(results)
    codes = sorted({result.finding.code for result in all_results})
    rules: dict[str, dict[str, object]] = {
        code: {
            "id": code,
            "shortDescription": {"text": CODE_DESCRIPTIONS[code]},
            "helpUri": find_finding_docs(code),
        }
        for code in codes
    }
    entries = []
    for finding, level, severity, fingerprint in all_results:
        if severity:
            properties = {"tags": ["security"], "security-severity": severity}
            rules[finding.code]["properties"] = properties
        path = shorten_path(finding.path, working_directory).replace(os.sep, "/")
        uri = quote(path, errors="replace")
        location = {
            "artifactLocation": {"uri": f"file://{uri}" if path.startswith("/") else uri},
            "region": {"startLine": finding.line or 1},
        }
        entry: dict[str, object] = {
            "ruleId": finding.code.value,
            "ruleIndex": codes.index(finding.code),
            "level": level,
            "message": {"text": sanitize_line(_format_with_hint(finding))},
            "locations": [{"physicalLocation": location}],
        }
        if fingerprint:
            entry["partialFingerprints"] = {"skillhall/v1": fingerprint}
        entries.append(entry)
    driver = {"name": "skillhall", "version": VERSION, "rules": [*rules.values()]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": entries}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def shorten_path(path: str, working_directory: str) -> str:
    """Return the path relative to the working directory if inside, else unchanged."""
    inside = path.removeprefix(working_directory.rstrip(os.sep) + os.sep)
    return inside or path


def format_location(finding: Finding, working_directory: str) -> str:
    """Return the path of a finding, with its line if it has one."""
    path = sanitize_line(shorten_path(finding.path, working_directory))
    return path if finding.line is None else f"{path}:{finding.line}"


def _format_with_hint(finding: Finding) -> str:
    return f"{finding.message} (hint: {finding.hint})" if finding.hint else finding.message


def _escape_message(text: str) -> str:
    return sanitize_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
