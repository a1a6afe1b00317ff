"""JSON of files that others may have written: read with care, written the same way every time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


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
