"""JSON of files that others may have written: read with care, written the same way every time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_DEPTH = 32
# The end of a text is optional, so that an unclosed one is passed over once, not from every quote.
_STRING_LITERALS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class InvalidJson(ValueError):
    """Bytes that are no JSON, or none that can be written back as it was."""


def parse_json(data: bytes, *, unique_keys: bool) -> object:
    """The value that UTF-8 JSON holds; with `unique`, no object may name a field twice.

    Raises: NotJson.
    """
    hook = _reject_duplicate_keys if unique_keys else None
    try:
        # Editors on Windows write a byte order mark.
        text = data.decode("utf-8-sig")
        value: object = json.loads(text, object_pairs_hook=hook, parse_constant=_reject_constant)
        render_json(value)
    except InvalidJson:
        raise
    except json.JSONDecodeError as error:
        raise InvalidJson(f"line {error.lineno} is not JSON") from None
    except UnicodeError:
        raise InvalidJson("it is not UTF-8") from None
    except (RecursionError, ValueError):
        raise InvalidJson("it nests too deeply, or holds numbers out of range") from None
    return value


def render_json(value: object, *, sort_keys: bool = False) -> bytes:
    """The value as UTF-8 JSON, two spaces to a level. Raises: ValueError, RecursionError."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=sort_keys, allow_nan=False)
    return text.encode("utf-8")


def _reject_duplicate_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidJson(f"{name[:100]!r} stands there twice")
        found[name] = value
    return found


def _reject_constant(constant: str) -> NoReturn:
    raise InvalidJson(f"{constant} is not JSON")


def parse_request_json(body: bytes) -> object:
    """The value of a request body. Raises: NotJson."""
    if _nesting_depth(body) > _MAX_DEPTH:
        raise InvalidJson(f"the JSON is nested more than {_MAX_DEPTH} levels deep")
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_reject_constant)
        if b"\\u" in body:
            # Half a surrogate pair is a text that nobody could be sent.
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
