"""A validation report in words: for people, for GitHub and for tools that read SARIF."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from skillhall.policy.loading import Effect
from skillhall.skill.meanings import MEANINGS
from skillhall.surfaces.cli.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall.policy.loading import Judged
    from skillhall.skill.finding import Finding

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


def as_sarif(findings: Iterable[Judged], base: str, version: str) -> dict[str, object]:
    """One SARIF 2.1.0 log."""
    listed = list(findings)
    codes = sorted({found.code for found, _ in listed})
    rules = [{"id": code, "shortDescription": {"text": MEANINGS[code]}} for code in codes]
    results = [
        {
            "ruleId": found.code.value,
            "ruleIndex": codes.index(found.code),
            "level": _LEVELS[effect],
            "message": {"text": clean(_with_hint(found))},
            "locations": [_location(found, base)],
        }
        for found, effect in listed
    ]
    driver = {"name": "skillhall", "version": version, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


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
