"""JSON output: one object on stdout, written in batches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.terminal import iter_batches, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from skillhall._internal.policy.effects import Effect, JudgedFinding
    from skillhall._internal.skill.finding import FindingRow

    Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

SCHEMA_VERSION = 1
_MAX_SHARED_HINT = 64  # characters; longer hints quote values and are rarely repeated


class EncodedItems(NamedTuple):
    """The items of a list, already encoded as JSON."""

    json_items: Iterator[str]


def print_json_report(
    command: str,
    data: Mapping[str, object],
    findings: Iterable[tuple[FindingRow, Effect]] | EncodedItems = (),
    error: Mapping[str, object] | None = None,
    copy: Callable[[bytes], None] | None = None,
) -> None:
    """Print the result of a command. Iterators are consumed while writing.

    `copy` gets the same bytes as stdout.
    """

    def write(text: str) -> None:
        encoded = _write(text)
        if copy is not None:
            copy(encoded)

    head: dict[str, object] = {"schemaVersion": SCHEMA_VERSION, "command": command}
    head["ok"] = error is None
    if error is not None:
        head["error"] = error
    write(_encode(head)[:-1] + ', "data": {')
    separator = ""
    for key, value in data.items():
        write(f"{separator}{_encode(key)}: ")
        separator = ", "
        if isinstance(value, EncodedItems):
            _write_encoded(write, value.json_items)
        elif isinstance(value, Iterator):
            _write_encoded(write, (_encode(batch)[1:-1] for batch in iter_batches(value)))
        else:
            write(_encode(value))
    write('}, "findings": ')
    if isinstance(findings, EncodedItems):
        _write_encoded(write, findings.json_items)
    else:
        _write_encoded(write, encode_findings(findings))
    write("}\n")


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


def encode_findings(findings: Iterable[tuple[FindingRow, Effect]]) -> Iterator[str]:
    """Encode findings without `json`, for speed: a listing may have tens of thousands."""
    starts: dict[tuple[str, str], str] = {}
    hints: dict[str, str] = {"": ""}  # most findings have one of a few hints
    for (code, message, line, hint, path, skill), effect in findings:
        start = starts.get((code, effect))
        if start is None:
            start = f'{{"code": "{code!s}", "effect": "{effect!s}", "message": '
            starts[code, effect] = start
        advice = hints.get(hint)
        if advice is None:
            advice = f', "hint": {quoted(sanitize_line(hint))}'
            if len(hint) < _MAX_SHARED_HINT:
                hints[hint] = advice
        text = quoted(message)
        # Of printable text, `quoted` escapes only quotes and backslashes.
        if len(text) != len(message) + 2 or not message.isascii() or "\x7f" in message:
            text = quoted(sanitize_line(message))
        place = f', "path": {quoted(path)}' if path else ""
        number = "" if line is None else f', "line": {line}'
        name = f', "skill": {quoted(skill)}' if skill else ""
        yield f"{start}{text}{place}{number}{advice}{name}}}"


def _write_encoded(write: Callable[[str], None], encoded_items: Iterator[str]) -> None:
    write("[")
    separator = ""
    for batch in iter_batches(encoded_items):
        write(separator + ", ".join(batch))
        separator = ", "
    write("]")


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, check_circular=False)


def _write(text: str) -> bytes:
    """Write UTF-8 regardless of the stream's encoding, and return the bytes.

    A lone surrogate, from a path that is not UTF-8, becomes a question mark.
    """
    sys.stdout.flush()  # text that is still buffered comes first
    encoded = text.encode("utf-8", "replace")
    rest = memoryview(encoded)
    # An unbuffered stream may write only a part.
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    return encoded
