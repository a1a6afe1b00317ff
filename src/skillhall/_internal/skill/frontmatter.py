"""Where the frontmatter lies in the bytes of a SKILL.md; `yaml_fields` reads its YAML."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

SKILL_MD = "SKILL.md"
BOM = b"\xef\xbb\xbf"
MAX_SKILL_MD_BYTES = (
    1024 * 1024
)  # bytes; eight in 77,000 public skills have more than a tenth of it
MAX_FRONTMATTER_BYTES = 64 * 1024  # bytes; the largest seen in public collections has 3.5 KB

# Possessive quantifiers keep both patterns linear: "\r\n" could also match as two line breaks.
_OPENING = re.compile(rb"(?:[ \t]*+(?:\r\n|[\r\n]))*+---[ \t]*+(?:\r\n|[\r\n]|\Z)")
_INCOMPLETE_OPENING = re.compile(rb"[ \t\r\n]*+-{0,3}[ \t]*+")
_FENCE = re.compile(rb"---[ \t]*+(?:\r\n|[\r\n]|\Z)")
_LINE_BREAK = re.compile(rb"\r\n|[\r\n]")


def is_skill_md(name: str) -> bool:
    """Whether a file is meant as the SKILL.md, in whatever case it is written."""
    return name.lower() == SKILL_MD.lower()


class MissingFrontmatter(Enum):
    """Why there is no frontmatter block."""

    NO_FENCE = "no opening fence"
    UNCLOSED = "no closing fence"


class FrontmatterBlock(NamedTuple):
    """Byte offsets of the YAML between the fences, and the line number it starts on."""

    start: int
    end: int
    body_start: int
    first_line: int
    is_plain: bool = False  # fences at the very top, no carriage return


def find_frontmatter(
    data: bytes, *, is_complete: bool = True
) -> FrontmatterBlock | MissingFrontmatter:
    """The frontmatter block of `data`.

    With `complete=False` the bytes are only a file's head: a fence that touches the cut may go
    on behind it, so it does not count.
    """
    # The usual file: plain fences, plain line breaks.
    at = data.find(b"\n---", 3)
    is_usual = at > 0 and data.startswith(b"---\n") and data[at + 4 : at + 5] == b"\n"
    if is_usual and data.find(b"\r", 0, at) < 0:
        return FrontmatterBlock(4, at + 1, at + 5, 2, is_plain=True)
    after_bom = len(BOM) if data.startswith(BOM) else 0
    opening = _OPENING.match(data, after_bom)
    if opening is None:
        blank = BOM.startswith(data) or _INCOMPLETE_OPENING.fullmatch(data, after_bom) is not None
        may_follow = blank and not is_complete
        return MissingFrontmatter.UNCLOSED if may_follow else MissingFrontmatter.NO_FENCE
    start = opening.end()
    closing = _find_closing_fence(data, start)
    if closing is None or (not is_complete and closing.end() == len(data)):
        return MissingFrontmatter.UNCLOSED
    return FrontmatterBlock(
        start, closing.start(), closing.end(), count_line_breaks(data, after_bom, start) + 1
    )


def is_frontmatter_complete(data: bytes) -> bool:
    """Whether the first bytes of a file are enough: they hold the closing fence, or never will."""
    at = data.find(b"\n---", 3)
    if at > 0 and data[at + 4 : at + 5] == b"\n" and data.startswith(b"---\n"):
        return True
    return find_frontmatter(data, is_complete=False) is not MissingFrontmatter.UNCLOSED


def _find_closing_fence(data: bytes, start: int) -> re.Match[bytes] | None:
    """The first line from `start` on that is a fence: the hyphens also occur inside values."""
    at = data.find(b"---", start)
    while at >= 0:
        if data[at - 1] in b"\r\n":
            fence = _FENCE.match(data, at)
            if fence is not None:
                return fence
        at = data.find(b"---", at + 1)
    return None


def count_line_breaks(data: bytes, start: int, end: int) -> int:
    """Line breaks between two offsets, whichever kind they are."""
    if data.find(b"\r", start, end) < 0:
        return data.count(b"\n", start, end)
    return sum(1 for _ in _LINE_BREAK.finditer(data, start, end))


def decode_text(data: bytes) -> str:
    """UTF-8 text with every line break written as a newline. Raises: UnicodeDecodeError."""
    text = data.decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
