"""Excerpts: a short piece of a stranger's text, with everything unseen written as an escape."""

from __future__ import annotations

import re

from skillhall._internal.skill.invisible import UNSEEN

SHOWN = 80  # characters of an excerpt
_BEFORE = 16  # characters of a long line that stand before the place
# Joiners, selectors and blank letters belong to writing, but an excerpt is no place for them.
_UNSEEN = re.compile(
    f"[{UNSEEN}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]"
)
_WHITE_SPACE = re.compile(r"\s++")


def excerpt(text: str, at: int = 0) -> str:
    """The place `at` in a line of text: one line, escaped, at most `SHOWN` characters."""
    line = text if len(text) <= SHOWN else text[max(0, at - _BEFORE) : at + SHOWN]
    return shortened(escaped(line))


def escaped(text: str) -> str:
    """`text` on one line, with an escape for each character that nobody sees."""
    shown = _UNSEEN.sub(_escape, _WHITE_SPACE.sub(" ", text).strip())
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _written_out(c) for c in shown)


def shortened(text: str, limit: int = SHOWN) -> str:
    """`text`, cut with an ellipsis if it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _escape(match: re.Match[str]) -> str:
    return _written_out(match.group())


def _written_out(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004
