"""Strict JSON for untrusted files and requests, and deterministic rendering."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MAX_DEPTH = 32  # of the body of a request
# The closing quote is optional: otherwise, the search would restart at every quote of a string that
# is not closed, which takes quadratic time.
_STRING_LITERALS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
_MAX_QUOTED = 100  # characters of an invalid value in a message
_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "a boolean",
    dict: "an object",
    int: "a non-negative integer",
    list: "a list",
    str: "a string",
}
_T = TypeVar("_T")


class InvalidJson(ValueError):
    """The JSON is invalid, has other fields, or cannot be written back unchanged."""


def parse_json(data: bytes, *, unique_keys: bool) -> object:
    """Parse UTF-8 JSON; `unique_keys` rejects duplicate keys. Raises: InvalidJson."""
    hook = _reject_duplicate_keys if unique_keys else None
    try:
        # Editors on Windows write a byte order mark.
        text = data.decode("utf-8-sig")
        value: object = json.loads(text, object_pairs_hook=hook, parse_constant=_reject_constant)
        render_json(value)  # fails for infinite numbers and lone surrogates
    except InvalidJson:
        raise
    except json.JSONDecodeError as error:
        raise InvalidJson(f"line {error.lineno} is not JSON") from None
    except UnicodeError:
        raise InvalidJson("not UTF-8") from None
    except (RecursionError, ValueError):
        raise InvalidJson("nested too deeply, or a number is out of range") from None
    return value


class JsonObject(NamedTuple):
    """JSON object and its location in a document, which messages name.

    The methods that return a field raise InvalidJson if it is missing or has the wrong type.
    """

    fields: dict[str, object]
    location: str = ""  # "" for the document, else such as `skills['a'].files[0]`

    @classmethod
    def parse(cls, data: bytes) -> JsonObject:
        """Parse a document. Raises: InvalidJson."""
        value = parse_json(data, unique_keys=True)
        if not isinstance(value, dict):
            raise InvalidJson("top level is not an object")
        return cls(value)

    def build_error(self, name: str, problem: str) -> InvalidJson:
        """Return an error about a field."""
        where = f"{self.location}.{name}" if self.location else repr(name)
        return InvalidJson(f"{where} {problem}")

    def require(self, name: str, kind: type[_T]) -> _T:
        """Return the value of a field, which must have this type. Integers are never negative."""
        if name not in self.fields:
            raise self.build_error(name, "is missing")
        value = self.fields[name]
        # In Python, a boolean is an integer.
        is_other = isinstance(value, bool) and kind is not bool
        is_negative = isinstance(value, int) and value < 0
        if not isinstance(value, kind) or is_other or is_negative:
            raise self.build_error(name, f"is not {_TYPE_NAMES[kind]}")
        return value

    def require_match(self, name: str, pattern: re.Pattern[str]) -> str:
        """Return a string that the pattern matches."""
        value = self.require(name, str)
        if not pattern.fullmatch(value):
            raise self.build_error(name, f"is malformed: {value[:_MAX_QUOTED]!r}")
        return value

    def require_choice(self, name: str, *known: str) -> str:
        """Return a string that is one of these."""
        value = self.require(name, str)
        if value not in known:
            problem = f"is not one of {', '.join(known)}: {value[:_MAX_QUOTED]!r}"
            raise self.build_error(name, problem)
        return value

    def require_objects(self, name: str) -> Iterator[JsonObject]:
        """Yield the objects of a list."""
        for index, value in enumerate(self.require(name, list)):
            location = f"{self.location}.{name}[{index}]".removeprefix(".")
            if not isinstance(value, dict):
                raise InvalidJson(f"{location} is not an object")
            yield JsonObject(value, location)

    def require_map(self, name: str) -> Iterator[tuple[str, JsonObject]]:
        """Yield the keys and objects of an object that is a map."""
        for key, value in self.require(name, dict).items():
            location = f"{self.location}.{name}[{key!r}]".removeprefix(".")
            if not isinstance(value, dict):
                raise InvalidJson(f"{location} is not an object")
            yield key, JsonObject(value, location)

    def collect_other_fields(self, *known: str) -> dict[str, object]:
        """Return the fields that are not known, which are written back."""
        return {name: value for name, value in self.fields.items() if name not in known}


def render_json(value: object, *, sort_keys: bool = False) -> bytes:
    """Render UTF-8 JSON, indented by two spaces. Raises: ValueError, RecursionError."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=sort_keys, allow_nan=False)
    return text.encode("utf-8")


def _reject_duplicate_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidJson(f"duplicate key {name[:100]!r}")
        fields[name] = value
    return fields


def _reject_constant(constant: str) -> NoReturn:
    raise InvalidJson(f"{constant} is not JSON")


def parse_request_json(body: bytes) -> object:
    """Parse the body of a request. Raises: InvalidJson."""
    if _nesting_depth(body) > _MAX_DEPTH:
        raise InvalidJson(f"the JSON is nested more than {_MAX_DEPTH} levels deep")
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_reject_constant)
        if b"\\u" in body:
            # A lone surrogate could not be encoded in a response.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise InvalidJson("the body is not valid JSON") from None
    return value


def _nesting_depth(body: bytes) -> int:
    deepest = depth = 0
    for bracket in _BRACKETS.finditer(_STRING_LITERALS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
