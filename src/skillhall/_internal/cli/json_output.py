"""JSON output: one object on stdout, written in batches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.terminal import iter_batches, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from skillhall._internal.policy.effects import JudgedFinding

    Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

SCHEMA_VERSION = 1
_PATH, _LINE, _HINT, _SKILL = '"path"', '"line"', '"hint"', '"skill"'


class EncodedItems(NamedTuple):
    """The items of a list, already encoded as JSON."""

    json_items: Iterator[str]


def print_json_report(
    command: str,
    data: Mapping[str, object],
    findings: Iterable[JudgedFinding] = (),
    error: Mapping[str, object] | None = None,
) -> None:
    """Print the result of a command. Iterators in `data` are consumed while writing."""
    head: dict[str, object] = {"schemaVersion": SCHEMA_VERSION, "command": command}
    head["ok"] = error is None
    if error is not None:
        head["error"] = error
    _write(_encode(head)[:-1] + ', "data": {')
    separator = ""
    for key, value in data.items():
        _write(f"{separator}{_encode(key)}: ")
        separator = ", "
        if isinstance(value, EncodedItems):
            _write_encoded(value.json_items)
        elif isinstance(value, Iterator):
            _write_encoded(_encode(batch)[1:-1] for batch in iter_batches(value))
        else:
            _write(_encode(value))
    _write('}, "findings": ')
    _write_encoded(_encode_findings(findings))
    _write("}\n")


def print_json_error(command: str, error: Mapping[str, object]) -> None:
    """Print the error of a command that failed."""
    head: dict[str, object] = {"schemaVersion": SCHEMA_VERSION, "command": command, "ok": False}
    _write(_encode({**head, "error": error}) + "\n")


def print_json_value(value: object) -> None:
    """Print a bare value, for formats such as SARIF."""
    _write(_encode(value) + "\n")


def serialize_finding(judged: JudgedFinding) -> dict[str, Json]:
    """Return a finding for JSON output, without empty fields."""
    finding, effect = judged
    report: dict[str, Json] = {
        "code": finding.code.value,
        "effect": effect.value,
        "message": sanitize_line(finding.message),
        "path": finding.path,
        "line": finding.line,
        "hint": sanitize_line(finding.hint),
        "skill": finding.skill,
    }
    return {key: value for key, value in report.items() if value not in ("", None)}


def _encode_findings(findings: Iterable[JudgedFinding]) -> Iterator[str]:
    """Encode findings without `json`, for speed: a listing may have tens of thousands."""
    for (code, message, line, hint, path, skill), effect in findings:
        yield (
            f'{{"code": "{code.value}", "effect": "{effect.value}", '
            f'"message": {quoted(sanitize_line(message))}'
            f"{f', {_PATH}: {quoted(path)}' if path else ''}"
            f"{'' if line is None else f', {_LINE}: {line}'}"
            f"{f', {_HINT}: {quoted(sanitize_line(hint))}' if hint else ''}"
            f"{f', {_SKILL}: {quoted(skill)}' if skill else ''}}}"
        )


def _write_encoded(encoded_items: Iterator[str]) -> None:
    _write("[")
    separator = ""
    for batch in iter_batches(encoded_items):
        _write(separator + ", ".join(batch))
        separator = ", "
    _write("]")


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, check_circular=False)


def _write(text: str) -> None:
    """Write UTF-8 regardless of the stream's encoding.

    A lone surrogate, from a path that is not UTF-8, becomes a question mark.
    """
    sys.stdout.flush()  # text that is still buffered comes first
    rest = memoryview(text.encode("utf-8", "replace"))
    # An unbuffered stream may write only a part.
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
