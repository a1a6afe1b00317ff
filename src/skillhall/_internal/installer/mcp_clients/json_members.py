"""Insertion and removal of one member in JSON text; all other bytes stay as they are.

Comments and commas before a closing bracket are accepted, as in the settings of editors.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.strict_json import InvalidJson

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]++|//[^\n]*+|/\*.*?\*/)
    |(?P<symbol>"(?:[^"\\\n]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"/]++)""",
    re.DOTALL | re.VERBOSE,
)
_INDENT = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*?|/\*[^\n]*?\*/[ \t]*)?(?=\r?\n)")
_DEFAULT_INDENT = "  "


class TextChange(NamedTuple):
    """A piece of text that is inserted or removed, at an offset."""

    start: int
    text: str


class _Value(NamedTuple):
    """A value and its location; `members` is empty unless it is an object."""

    start: int
    end: int
    value: object
    members: dict[str, _Member]


class _Member(NamedTuple):
    start: int  # of the key
    value: _Value
    comma: int  # offset of the comma after it, or -1


class _Token(NamedTuple):
    symbol: str
    start: int
    end: int


def parse_commented_json(text: str) -> dict[str, object]:
    """Return the object in `text`. Raises: InvalidJson."""
    return _parse_object(text)[1]


def insert_member(text: str, key: str, name: str, value: object) -> TextChange:
    """Return the text that adds `name` to the object `key`, as its first member.

    The object is created if it is missing. Raises: InvalidJson.
    """
    root, fields = _parse_object(text)
    container = root.members.get(key)
    first = next(iter(root.members.values()), None)
    unit = (_find_indent(text, first.start) if first else None) or _DEFAULT_INDENT
    if container is None:
        return _insert_first(text, root, key, {name: value}, unit)
    if not isinstance(fields[key], dict):
        raise InvalidJson(f"{key!r} is not an object")
    if name in container.value.members:
        raise InvalidJson(f"{name!r} already exists")
    return _insert_first(text, container.value, name, value, unit)


def remove_member(text: str, key: str, name: str) -> list[TextChange]:
    """Return the pieces of text to remove, for `name` in the object `key`. Raises: InvalidJson."""
    root, _ = _parse_object(text)
    members = root.members[key].value.members
    names = [*members]
    member, position = members[name], names.index(name)
    start, end = member.start, member.value.end
    while start and text[start - 1] in " \t":
        start -= 1
    if start and text[start - 1] == "\n":
        start -= 2 if text[:start].endswith("\r\n") else 1
    pieces = []
    if member.comma >= 0:
        if text[end : member.comma].strip():  # a comment between them stays
            pieces.append(TextChange(member.comma, ","))
        else:
            end = member.comma + 1
    elif position:
        pieces.append(TextChange(members[names[position - 1]].comma, ","))
    return sorted([TextChange(start, text[start:end]), *pieces])


def _insert_first(text: str, parent: _Value, name: str, value: object, unit: str) -> TextChange:
    newline = "\r\n" if "\r\n" in text else "\n"
    line_start = text.rfind("\n", 0, parent.start) + 1
    outer = _INDENT.match(text, line_start)
    outer_indent = outer.group() if outer else ""
    first = next(iter(parent.members.values()), None)
    own_indent = _find_indent(text, first.start) if first else None
    indent = outer_indent + unit if own_indent is None else own_indent
    rendered = json.dumps({name: value}, ensure_ascii=False, indent=unit)
    lines = [line.removeprefix(unit) for line in rendered.splitlines()[1:-1]]
    member = newline.join(f"{indent}{line}" for line in lines)
    start = parent.start + 1
    rest = _REST_OF_LINE.match(text, start)
    if rest:  # what follows the bracket on its line stays there
        return TextChange(rest.end(), f"{newline}{member}{',' if first else ''}")
    end = f",{newline}{indent}" if first else f"{newline}{outer_indent}"
    return TextChange(start, f"{newline}{member}{end}")


def _find_indent(text: str, start: int) -> str | None:
    """Return the indentation of a member, `None` if it does not start a line."""
    line_start = text.rfind("\n", 0, start) + 1
    indent = text[line_start:start]
    return indent if line_start and not indent.strip(" \t") else None


def _parse_object(text: str) -> tuple[_Value, dict[str, object]]:
    tokens = [*_tokenize(text)]
    if not tokens:
        raise InvalidJson("the file is empty")
    try:
        root, position = _parse_value(tokens, 0)
    except IndexError:
        raise InvalidJson("a bracket is not closed") from None
    except RecursionError:
        raise InvalidJson("nested too deeply") from None
    if position != len(tokens):
        raise _build_error(text, tokens[position].start)
    if not isinstance(root.value, dict):
        raise InvalidJson("top level is not an object")
    return root, root.value


def _tokenize(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _build_error(text, position)
        if match.lastgroup == "symbol":
            yield _Token(match.group(), match.start(), match.end())
        position = match.end()


def _parse_value(tokens: list[_Token], position: int) -> tuple[_Value, int]:
    token = tokens[position]
    if token.symbol == "{":
        return _parse_members(tokens, position)
    if token.symbol == "[":
        return _parse_items(tokens, position)
    try:
        value = json.loads(token.symbol)
    except ValueError:
        raise InvalidJson(f"{token.symbol[:20]!r} is not JSON") from None
    return _Value(token.start, token.end, value, {}), position + 1


def _parse_members(tokens: list[_Token], position: int) -> tuple[_Value, int]:
    start = tokens[position].start
    position += 1
    members: dict[str, _Member] = {}
    while tokens[position].symbol != "}":
        key, colon = tokens[position], tokens[position + 1]
        if not key.symbol.startswith('"') or colon.symbol != ":":
            raise InvalidJson(f"{key.symbol[:20]!r} is not a key")
        value, position = _parse_value(tokens, position + 2)
        position, comma = _skip_comma(tokens, position, "}")
        name = _parse_value([key], 0)[0].value
        if not isinstance(name, str) or name in members:
            raise InvalidJson(f"duplicate key {name!r}")
        members[name] = _Member(key.start, value, comma)
    fields = {name: member.value.value for name, member in members.items()}
    return _Value(start, tokens[position].end, fields, members), position + 1


def _parse_items(tokens: list[_Token], position: int) -> tuple[_Value, int]:
    start = tokens[position].start
    position += 1
    items: list[object] = []
    while tokens[position].symbol != "]":
        value, position = _parse_value(tokens, position)
        position, _ = _skip_comma(tokens, position, "]")
        items.append(value.value)
    return _Value(start, tokens[position].end, items, {}), position + 1


def _skip_comma(tokens: list[_Token], position: int, closing: str) -> tuple[int, int]:
    """Return the position after a comma, and the comma's offset or -1."""
    token = tokens[position]
    if token.symbol == ",":
        return position + 1, token.start
    if token.symbol != closing:
        raise InvalidJson(f"there is no comma before {token.symbol[:20]!r}")
    return position, -1


def _build_error(text: str, position: int) -> InvalidJson:
    line = text.count("\n", 0, position) + 1
    return InvalidJson(f"line {line} is not JSON")
