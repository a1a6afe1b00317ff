"""Strict JSON for untrusted files and requests, and deterministic rendering."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_DEPTH = 32  # of the body of a request
# The closing quote is optional: otherwise, the search would restart at every quote of a string that
# is not closed, which takes quadratic time.
_STRING_LITERALS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class InvalidJson(ValueError):
    """The JSON is invalid, or cannot be written back unchanged."""


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
