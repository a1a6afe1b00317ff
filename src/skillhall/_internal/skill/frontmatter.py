"""Where the frontmatter lies in the bytes of a SKILL.md; `yaml_fields` reads its YAML."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

SKILL_MD = "SKILL.md"
BOM = b"\xef\xbb\xbf"
MAX_SKILL_MD = 1024 * 1024  # bytes; eight in 77,000 public skills have more than a tenth of it
MAX_FRONTMATTER = 64 * 1024  # bytes; the largest seen in public collections has 3.5 KB

# Possessive quantifiers keep both patterns linear: "\r\n" could also match as two line breaks.
_OPENING = re.compile(rb"(?:[ \t]*+(?:\r\n|[\r\n]))*+---[ \t]*+(?:\r\n|[\r\n]|\Z)")
_BLANK_SO_FAR = re.compile(rb"[ \t\r\n]*+-{0,3}[ \t]*+")
_FENCE = re.compile(rb"---[ \t]*+(?:\r\n|[\r\n]|\Z)")
_LINE_BREAK = re.compile(rb"\r\n|[\r\n]")


def is_skill_md(name: str) -> bool:
    """Whether a file is meant as the SKILL.md, in whatever case it is written."""
    return name.lower() == SKILL_MD.lower()


class Missing(Enum):
    """Why there is no frontmatter block."""

    NO_FENCE = "no opening fence"
    UNCLOSED = "no closing fence"


class Block(NamedTuple):
    """Byte offsets of the YAML between the fences, and the line number it starts on."""

    start: int
    end: int
    body: int
    line: int
    is_plain: bool = False  # fences at the very top, no carriage return


def find_block(data: bytes, *, complete: bool = True) -> Block | Missing:
    """The frontmatter block of `data`.

    With `complete=False` the bytes are only a file's head: a fence that touches the cut may go
    on behind it, so it does not count.
    """
    # The usual file: plain fences, plain line breaks.
    at = data.find(b"\n---", 3)
    is_usual = at > 0 and data.startswith(b"---\n") and data[at + 4 : at + 5] == b"\n"
    if is_usual and data.find(b"\r", 0, at) < 0:
        return Block(4, at + 1, at + 5, 2, is_plain=True)
    after_bom = len(BOM) if data.startswith(BOM) else 0
    opening = _OPENING.match(data, after_bom)
    if opening is None:
        blank = BOM.startswith(data) or _BLANK_SO_FAR.fullmatch(data, after_bom) is not None
        may_follow = blank and not complete
        return Missing.UNCLOSED if may_follow else Missing.NO_FENCE
    start = opening.end()
    closing = _find_closing(data, start)
    if closing is None or (not complete and closing.end() == len(data)):
        return Missing.UNCLOSED
    return Block(start, closing.start(), closing.end(), count_lines(data, after_bom, start) + 1)


def is_closed(head: bytes) -> bool:
    """Whether the first bytes of a file are enough: they hold the closing fence, or never will."""
    at = head.find(b"\n---", 3)
    if at > 0 and head[at + 4 : at + 5] == b"\n" and head.startswith(b"---\n"):
        return True
    return find_block(head, complete=False) is not Missing.UNCLOSED


def _find_closing(data: bytes, start: int) -> re.Match[bytes] | None:
    """The first line from `start` on that is a fence: the hyphens also occur inside values."""
    at = data.find(b"---", start)
    while at >= 0:
        if data[at - 1] in b"\r\n":
            fence = _FENCE.match(data, at)
            if fence is not None:
                return fence
        at = data.find(b"---", at + 1)
    return None


def count_lines(data: bytes, start: int, end: int) -> int:
    """Line breaks between two offsets, whichever kind they are."""
    if data.find(b"\r", start, end) < 0:
        return data.count(b"\n", start, end)
    return sum(1 for _ in _LINE_BREAK.finditer(data, start, end))


def decode_text(data: bytes) -> str:
    """UTF-8 text with every line break written as a newline. Raises: UnicodeDecodeError."""
    text = data.decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
