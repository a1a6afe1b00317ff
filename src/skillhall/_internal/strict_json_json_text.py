"""JSON from strangers: bounded before it is parsed."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from skillhall._internal.http.http_error import Refused

_DEPTH = 32
# The end of a text is optional, so that an unclosed one is passed over once, not from every quote.
_TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def parse_json(body: bytes) -> object:
    """The value that `body` holds. Raises: Refused."""
    if _depth(body) > _DEPTH:
        raise Refused("invalid_argument", f"the JSON is nested more than {_DEPTH} levels deep")
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\u" in body:
            # Half a surrogate pair is a text that nobody could be sent.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise Refused("invalid_argument", "the body is not valid JSON") from None
    return value


def _depth(body: bytes) -> int:
    deepest = depth = 0
    for bracket in _BRACKETS.finditer(_TEXTS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
