"""Locates the frontmatter in the bytes of a SKILL.md; `yaml` reads its fields.

Every command imports this module. The patterns are compiled when the first unusual file is read,
and annotations are evaluated, because `NamedTuple` would compile each one that is text.
"""

import re
from enum import Enum
from typing import NamedTuple

SKILL_MD = "SKILL.md"
BOM = b"\xef\xbb\xbf"
MAX_SKILL_MD_BYTES = 1024 * 1024  # eight of 77,000 public skills exceed a tenth of it
MAX_FRONTMATTER_BYTES = 64 * 1024  # the largest in public collections has 3.5 KB
LFS_SIGNATURE = b"version https://git-lfs.github.com/spec/"  # the start of a Git LFS pointer

# Possessive quantifiers keep the patterns linear: "\r\n" could also match as two line breaks.
_OPENING = rb"(?:[ \t]*+(?:\r\n|[\r\n]))*+---[ \t]*+(?:\r\n|[\r\n]|\Z)"
_INCOMPLETE_OPENING = rb"[ \t\r\n]*+-{0,3}[ \t]*+"
_FENCE = rb"---[ \t]*+(?:\r\n|[\r\n]|\Z)"
_LINE_BREAK = rb"\r\n|[\r\n]"


def is_skill_md(name: str) -> bool:
    """Whether the file name is SKILL.md, ignoring case."""
    return name == SKILL_MD or name.lower() == SKILL_MD.lower()


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
    is_plain: bool = False  # starts at byte 0 and has no carriage return


def find_frontmatter(
    data: bytes, *, is_complete: bool = True
) -> FrontmatterBlock | MissingFrontmatter:
    """Locate the frontmatter block in `data`, or return why there is none.

    With `is_complete=False`, `data` is only the start of a file. A fence at its very end does not
    count, since its line may continue, and `UNCLOSED` means that more of the file is needed.
    """
    # Fast path for the usual file: plain fences and line breaks.
    at = data.find(b"\n---", 3)
    is_usual = at > 0 and data.startswith(b"---\n") and data[at + 4 : at + 5] == b"\n"
    if is_usual and data.find(b"\r", 0, at) < 0:
        return FrontmatterBlock(4, at + 1, at + 5, 2, is_plain=True)
    after_bom = len(BOM) if data.startswith(BOM) else 0
    opening = re.compile(_OPENING).match(data, after_bom)
    if opening is None:
        blank = re.compile(_INCOMPLETE_OPENING)
        is_blank = BOM.startswith(data) or blank.fullmatch(data, after_bom)
        may_follow = is_blank and not is_complete
        return MissingFrontmatter.UNCLOSED if may_follow else MissingFrontmatter.NO_FENCE
    start = opening.end()
    # A fence is a complete line, since values may contain "---".
    fence = re.compile(_FENCE)
    closing, at = None, data.find(b"---", start)
    while at >= 0 and closing is None:
        closing = fence.match(data, at) if data[at - 1] in b"\r\n" else None
        at = data.find(b"---", at + 1)
    if closing is None or (not is_complete and closing.end() == len(data)):
        return MissingFrontmatter.UNCLOSED
    return FrontmatterBlock(
        start, closing.start(), closing.end(), count_line_breaks(data, after_bom, start) + 1
    )


def is_frontmatter_complete(data: bytes) -> bool:
    """Whether `data` contains the complete frontmatter, or shows that there is none."""
    return find_frontmatter(data, is_complete=False) is not MissingFrontmatter.UNCLOSED


def count_line_breaks(data: bytes, start: int, end: int) -> int:
    """Count LF, CR LF and CR line breaks between two offsets."""
    if data.find(b"\r", start, end) < 0:
        return data.count(b"\n", start, end)
    return sum(1 for _ in re.compile(_LINE_BREAK).finditer(data, start, end))


def decode_text(data: bytes) -> str:
    """Decode UTF-8 and normalize line breaks. Raises: UnicodeDecodeError."""
    return normalize_newlines(data.decode("utf-8"))


def normalize_newlines(text: str) -> str:
    """Replace CR LF and CR with LF."""
    # Searching for one character is much faster than for two, and most texts have no CR.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
