"""Line numbers of values in a config file, computed only for error messages."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath: TypeAlias = "tuple[str | int, ...]"

MAX_TOML_LINES = 2_000  # the search is quadratic: it parses every prefix of the file
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_BLANK = re.compile(r"\s*(?:#.*)?")


def find_json_line(text: str, path: KeyPath) -> int:
    """Return the line of the value at `path`, else of its nearest parent."""
    lines = dict(iter_json_lines(text))
    return next(lines[path[:size]] for size in range(len(path), -1, -1) if path[:size] in lines)


def iter_json_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the path and the first line of every value; a member starts at its key.

    The document must be valid JSON.
    """
    stack: list[str | int] = []
    opened: list[str] = []
    is_key = False
    line, counted = 1, 0  # the current line, and the offset up to which newlines were counted
    for match in _JSON_TOKEN.finditer(text):
        symbol = match.group()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if symbol in ("}", "]"):
            opened.pop()
            stack.pop()
            continue
        if symbol == ",":
            is_key = opened[-1] == "{"
            if not is_key:
                stack[-1] = int(stack[-1]) + 1
            continue
        if symbol == ":":
            is_key = False
            continue
        if is_key:
            stack[-1] = json.loads(symbol)
        # The value of a member was already yielded with its key.
        at_member = not is_key and opened[-1:] == ["{"]
        if not at_member:
            yield tuple(stack), line
        if symbol in ("{", "["):
            opened.append(symbol)
            stack.append("" if symbol == "{" else 0)
            is_key = symbol == "{"


def find_toml_line(text: str, path: KeyPath) -> int:
    """Return the line of the statement that sets `path` or its nearest parent, else 1."""
    found: dict[int, int] = {}  # line by number of path segments
    lines = text.splitlines(keepends=True)[:MAX_TOML_LINES]
    start = 1
    for end, prefix in enumerate(accumulate(lines), start=1):
        try:
            document = tomllib.loads(prefix)
        except tomllib.TOMLDecodeError:  # in the middle of a statement
            continue
        # Blank lines and comments before the statement are not a part of it.
        statement = (n for n in range(start, end) if not _BLANK.fullmatch(lines[n - 1].rstrip()))
        first = next(statement, end)
        for size in range(1, len(path) + 1):
            if size not in found and _has_path(document, path[:size]):
                found[size] = first
        start = end + 1
    return found[max(found)] if found else 1


def _has_path(value: object, path: KeyPath) -> bool:
    for key in path:
        exists = (isinstance(value, dict) and key in value) or (
            isinstance(value, list) and isinstance(key, int) and key < len(value)
        )
        if not exists:
            return False
        value = value[key]  # type: ignore[index]  # checked above
    return True
