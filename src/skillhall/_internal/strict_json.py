"""JSON of files that others may have written: read with care, written the same way every time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEPTH = 32
# The end of a text is optional, so that an unclosed one is passed over once, not from every quote.
_TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class NotJson(ValueError):
    """Bytes that are no JSON, or none that can be written back as it was."""


def parse_json(data: bytes, *, unique: bool) -> object:
    """The value that UTF-8 JSON holds; with `unique`, no object may name a field twice.

    Raises: NotJson.
    """
    hook = _without_repetition if unique else None
    try:
        # Editors on Windows write a byte order mark.
        text = data.decode("utf-8-sig")
        value: object = json.loads(text, object_pairs_hook=hook, parse_constant=_refuse)
        render_json(value)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno} is not JSON") from None
    except UnicodeError:
        raise NotJson("it is not UTF-8") from None
    except (RecursionError, ValueError):
        raise NotJson("it nests too deeply, or holds numbers out of range") from None
    return value


def render_json(value: object, *, sort: bool = False) -> bytes:
    """The value as UTF-8 JSON, two spaces to a level. Raises: ValueError, RecursionError."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=sort, allow_nan=False)
    return text.encode("utf-8")


def _without_repetition(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise NotJson(f"{name[:100]!r} stands there twice")
        found[name] = value
    return found


def _refuse(constant: str) -> NoReturn:
    raise NotJson(f"{constant} is not JSON")


def parse_request_json(body: bytes) -> object:
    """The value of a request body. Raises: NotJson."""
    if _depth(body) > _DEPTH:
        raise NotJson(f"the JSON is nested more than {_DEPTH} levels deep")
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\u" in body:
            # Half a surrogate pair is a text that nobody could be sent.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise NotJson("the body is not valid JSON") from None
    return value


def _depth(body: bytes) -> int:
    deepest = depth = 0
    for bracket in _BRACKETS.finditer(_TEXTS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
