"""Bytes in, a parsed skill with findings out. Never raises on content."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

from skillhall.skill.careful_yaml import YamlRefused
from skillhall.skill.checks import check_body, check_frontmatter
from skillhall.skill.finding import Code, Finding
from skillhall.skill.frontmatter import (
    BOM,
    MAX_FRONTMATTER,
    Block,
    Missing,
    count_lines,
    decode_text,
    find_block,
)
from skillhall.skill.model import EMPTY, Frontmatter, KeyCase, ParsedSkill
from skillhall.skill.yaml_fields import read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_SKILL_MD = 1024 * 1024  # bytes; eight in 77,000 public skills have more than a tenth of it
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class Head(NamedTuple):
    """The frontmatter of a SKILL.md, and where its block lies (`None` without one)."""

    frontmatter: Frontmatter
    findings: tuple[Finding, ...]
    block: Block | None


def parse_skill(
    data: bytes, folder: str | None = None, keys: KeyCase = KeyCase.EXACT
) -> ParsedSkill:
    """A whole SKILL.md. `folder` is the name of the folder it stands in, if it has one."""
    if (unreadable := _find_unreadable(data)) is not None:
        return ParsedSkill(EMPTY, "", (unreadable,))
    head = parse_head(data, folder, keys)
    if head.block is None:
        return ParsedSkill(EMPTY, decode_text(data).strip(), head.findings)
    body = decode_text(data[head.block.body :]).strip()
    return ParsedSkill(head.frontmatter, body, (*head.findings, *check_body(body)))


@overload
def parse_head(data: bytes, folder: str | None = None, keys: KeyCase = KeyCase.EXACT) -> Head: ...
@overload
def parse_head(
    data: bytes, folder: str | None, keys: KeyCase, *, complete: bool
) -> Head | None: ...
def parse_head(
    data: bytes,
    folder: str | None = None,
    keys: KeyCase = KeyCase.EXACT,
    *,
    complete: bool = True,
) -> Head | None:
    """The frontmatter alone: what a listing needs, from as few bytes as hold it.

    With `complete=False` the bytes are a file's first ones; `None` asks for more of them.
    """
    block = find_block(data, complete=complete)
    if isinstance(block, Missing):
        if block is Missing.UNCLOSED and not complete:
            return None
        return Head(EMPTY, tuple(_explain(data, block, complete=complete)), None)
    if block.end - block.start > MAX_FRONTMATTER:
        return Head(EMPTY, (_large_frontmatter(block.line),), block)
    raw = data[block.start : block.end]
    if b"\0" in raw:
        return Head(EMPTY, (_nul_byte(data, data.index(b"\0")),), block)
    findings = [] if _is_plain_layout(data, block) else [*_check_layout(data, block)]
    try:
        text = decode_text(raw)
        reading = read_fields(text)
    except UnicodeDecodeError as error:
        return Head(EMPTY, (_not_utf8(data, block.start + error.start),), block)
    except YamlRefused as refusal:
        findings += _moved((refusal.finding,), block.line - 1)
        return Head(EMPTY, tuple(findings), block)
    front = Frontmatter.of(reading.fields, keys)
    if reading.findings:
        findings += _moved(reading.findings, block.line - 1)
    findings += check_frontmatter(front, folder, _Lines(text, block.line))
    return Head(front, tuple(findings), block)


class _Lines:
    """Finds the line that a field stands on."""

    __slots__ = ("first", "text")

    def __init__(self, text: str, first: int) -> None:
        self.text = text
        self.first = first

    def __call__(self, field: str) -> int:
        if self.text.startswith(f"{field}:"):
            return self.first
        return self.first + self.text.count("\n", 0, self.text.find(f"\n{field}:") + 1)


def large_skill_md(size: int) -> Finding:
    """The finding for a SKILL.md beyond `MAX_SKILL_MD`: known before a byte is read."""
    return Finding(
        Code.TOO_LARGE,
        f"SKILL.md has {size} bytes; at most {MAX_SKILL_MD} are read",
        1,
        "move details into files beside it",
    )


def _find_unreadable(data: bytes) -> Finding | None:
    if len(data) > MAX_SKILL_MD:
        return large_skill_md(len(data))
    if b"\0" in data:
        return _nul_byte(data, data.index(b"\0"))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(data, error.start)
    return None


def _explain(data: bytes, missing: Missing, *, complete: bool) -> Iterator[Finding]:
    """Why there is no block: the encoding first, since it explains the rest."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        yield _not_utf8(data, 0) if utf16 else _nul_byte(data, data.index(b"\0"))
        return
    if data.startswith(_LFS_POINTER):
        yield Finding(
            Code.LFS_POINTER,
            "SKILL.md is a Git LFS pointer; its text was never downloaded",
            1,
            "run 'git lfs pull', or keep SKILL.md out of LFS",
        )
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A head may end in the middle of a character.
        if complete or error.end < len(data) or error.reason != "unexpected end of data":
            yield _not_utf8(data, error.start)
            return
    if missing is Missing.NO_FENCE:
        yield Finding(
            Code.NO_FRONTMATTER,
            "there is no frontmatter: the first line is not '---'",
            1,
            "start the file with '---', 'name: …', 'description: …', '---'",
        )
    elif len(data) > MAX_FRONTMATTER:
        yield _large_frontmatter(1)
    else:
        yield Finding(
            Code.UNCLOSED_FRONTMATTER,
            "the frontmatter has no closing '---'",
            1,
            "add a line with three hyphens after the last field",
        )


def _is_plain_layout(data: bytes, block: Block) -> bool:
    return block.start == len(b"---\n") and data.find(b"\r", 0, block.body) < 0


def _check_layout(data: bytes, block: Block) -> Iterator[Finding]:
    if data.startswith(BOM):
        yield Finding(Code.BOM, "the file starts with a byte order mark", 1, "save it without")
    if block.line > 2:  # noqa: PLR2004 - the opening fence is line 1
        yield Finding(
            Code.LEADING_BLANK, "blank lines stand before the frontmatter", 1, "remove them"
        )
    if b"\r" in data[: block.body]:
        yield Finding(Code.CRLF, "lines end in carriage returns", 1, "save it with plain newlines")


def _large_frontmatter(line: int) -> Finding:
    return Finding(
        Code.FRONTMATTER_LARGE,
        f"the frontmatter has more than {MAX_FRONTMATTER} bytes",
        line,
        "move data into a file beside SKILL.md",
    )


def _nul_byte(data: bytes, offset: int) -> Finding:
    return Finding(
        Code.NUL_BYTE, "the file holds a NUL byte", _line_of(data, offset), "save it as plain text"
    )


def _not_utf8(data: bytes, offset: int) -> Finding:
    return Finding(
        Code.NOT_UTF8,
        f"the file is not UTF-8 (byte {offset + 1} is 0x{data[offset]:02x})",
        _line_of(data, offset),
        "save it as UTF-8",
    )


def _line_of(data: bytes, offset: int) -> int:
    return count_lines(data, 0, offset) + 1


def _moved(findings: Iterable[Finding], lines: int) -> Iterator[Finding]:
    """The readers' findings, with lines counted from the top of the file."""
    for found in findings:
        yield Finding(found.code, found.message, (found.line or 1) + lines, found.hint)
