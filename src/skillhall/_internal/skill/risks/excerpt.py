"""Excerpts: a short piece of a stranger's text, with everything unseen written as an escape."""

from __future__ import annotations

import re

from skillhall._internal.skill.invisible import INVISIBLE_CHARACTERS

MAX_EXCERPT_LENGTH = 80  # characters of an excerpt
_LEADING_LENGTH = 16  # characters of a long line that stand before the place
# Joiners, selectors and blank letters belong to writing, but an excerpt is no place for them.
_INVISIBLE = re.compile(
    f"[{INVISIBLE_CHARACTERS}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]"
)
_WHITE_SPACE = re.compile(r"\s++")


def build_excerpt(text: str, offset: int = 0) -> str:
    """The place `at` in a line of text: one line, escaped, at most `SHOWN` characters."""
    line = (
        text
        if len(text) <= MAX_EXCERPT_LENGTH
        else text[max(0, offset - _LEADING_LENGTH) : offset + MAX_EXCERPT_LENGTH]
    )
    return truncate(escape_invisible(line))


def escape_invisible(text: str) -> str:
    """`text` on one line, with an escape for each character that nobody sees."""
    shown = _INVISIBLE.sub(_escape_match, _WHITE_SPACE.sub(" ", text).strip())
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _format_escape(c) for c in shown)


def truncate(text: str, limit: int = MAX_EXCERPT_LENGTH) -> str:
    """`text`, cut with an ellipsis if it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _escape_match(match: re.Match[str]) -> str:
    return _format_escape(match.group())


def _format_escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004
