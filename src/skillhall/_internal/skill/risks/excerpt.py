"""Excerpts: short pieces of untrusted text, with invisible characters escaped."""

from __future__ import annotations

import re

from skillhall._internal.skill.invisible_characters import INVISIBLE_CHARACTERS

MAX_EXCERPT_LENGTH = 80  # characters
_LEADING_LENGTH = 16  # characters before the match, in a long line
# Joiners, selectors and blank letters are legitimate in text, but an excerpt must show them.
_INVISIBLE = re.compile(
    f"[{INVISIBLE_CHARACTERS}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]"
)
_WHITE_SPACE = re.compile(r"\s++")


def build_excerpt(text: str, offset: int = 0) -> str:
    """Return one escaped line around `offset`, of at most `MAX_EXCERPT_LENGTH`."""
    if len(text) > MAX_EXCERPT_LENGTH:
        text = text[max(0, offset - _LEADING_LENGTH) : offset + MAX_EXCERPT_LENGTH]
    return truncate(escape_invisible(text))


def escape_invisible(text: str) -> str:
    """Return `text` on one line, with invisible characters escaped."""
    line = _WHITE_SPACE.sub(" ", text).strip()
    line = _INVISIBLE.sub(lambda match: _format_escape(match.group()), line)
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else _format_escape(c) for c in line)


def truncate(text: str, limit: int = MAX_EXCERPT_LENGTH) -> str:
    """Cut `text` at `limit` characters, with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _format_escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004
