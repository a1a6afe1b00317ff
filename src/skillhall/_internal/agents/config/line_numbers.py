"""Where a value of a config file stands: the line that an error names. Asked only for errors."""

from __future__ import annotations

import re
import tomllib
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath: TypeAlias = "tuple[str | int, ...]"

MAX_TOML_LINES = 2_000  # of TOML that are looked through, since each look reads all lines before it
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_BLANK = re.compile(r"\s*(?:#.*)?")


def find_json_line(text: str, path: KeyPath) -> int:
    """The line of the value at `path`, else of the nearest value above it."""
    lines = dict(_json_lines(text))
    return next(lines[path[:size]] for size in range(len(path), -1, -1) if path[:size] in lines)


def _json_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every value of a valid document with the line it begins in; a member begins at its key."""
    stack: list[str | int] = []
    opened: list[str] = []
    is_key = False
    line, counted = 1, 0  # the line, and how many characters it was counted in
    for match in _JSON_TOKEN.finditer(text):
        mark = match.group()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if mark in ("}", "]"):
            opened.pop()
            stack.pop()
            continue
        if mark == ",":
            is_key = opened[-1] == "{"
            if not is_key:
                stack[-1] = int(stack[-1]) + 1
            continue
        if mark == ":":
            is_key = False
            continue
        if is_key:
            stack[-1] = _unquote(mark)
        at_member = not is_key and opened[-1:] == ["{"]
        if not at_member:
            yield tuple(stack), line
        if mark in ("{", "["):
            opened.append(mark)
            stack.append("" if mark == "{" else 0)
            is_key = mark == "{"


def _unquote(token: str) -> str:
    import json  # noqa: PLC0415 - only for an error

    return str(json.loads(token))


def find_toml_line(text: str, path: KeyPath) -> int:
    """The line of the statement that brings the value at `path`, else the nearest one above it."""
    found: dict[int, int] = {}
    start = 1
    for number, part in enumerate(_iter_prefixes(text), start=1):
        try:
            document = tomllib.loads(part)
        except tomllib.TOMLDecodeError:  # in the middle of a statement
            continue
        for size in range(1, len(path) + 1):
            if size not in found and _has_path(document, path[:size]):
                found[size] = _first_nonblank_line(text, start, number)
        start = number + 1
    return found[max(found)] if found else 1


def _iter_prefixes(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)[:MAX_TOML_LINES]
    return accumulate(lines)


def _first_nonblank_line(text: str, start: int, end: int) -> int:
    """The first of the lines from `start` to `end` that says something."""
    lines = text.splitlines()[start - 1 : end]
    said = (at for at, line in enumerate(lines, start) if not _BLANK.fullmatch(line))
    return next(said, end)


def _has_path(value: object, path: KeyPath) -> bool:
    for key in path:
        is_there = (isinstance(value, dict) and key in value) or (
            isinstance(value, list) and isinstance(key, int) and key < len(value)
        )
        if not is_there:
            return False
        value = value[key]  # type: ignore[index]  # a mapping or a list, as was just seen
    return True
