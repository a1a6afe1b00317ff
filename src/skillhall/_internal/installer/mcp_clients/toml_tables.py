"""Insertion and removal of one table in TOML text; all other bytes stay as they are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from skillhall._internal.installer.mcp_clients.json_members import TextChange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def append_table(text: str, key: str, name: str, fields: Mapping[str, object]) -> TextChange:
    """Return the text that adds the table `key.name` at the end.

    `name` is a bare key. Values are strings and lists of strings.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    separator = "" if not text or text.endswith("\n") else newline
    separator += newline if text.strip() else ""
    lines = [f"[{key}.{name}]", *(f"{field} = {_render(fields[field])}" for field in fields)]
    return TextChange(len(text), f"{separator}{newline.join(lines)}{newline}")


def remove_table(text: str, key: str, name: str) -> Sequence[TextChange]:
    """Return the pieces of text to remove, for the table `key.name` and those inside it.

    The result must be checked: a line of a string can look like a header.
    """
    quoted = re.escape(name)
    own = re.compile(rf"""[ \t]*\[\s*{re.escape(key)}\s*\.\s*(["']?){quoted}\1\s*[.\]]""")
    starts = [match.start() for match in _HEADER.finditer(text)]
    return [
        TextChange(start, text[start:end])
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
        if own.match(text, start)
    ]


def _render(value: object) -> str:
    # A JSON string is a TOML string, except for this character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
