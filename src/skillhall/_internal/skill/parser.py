"""Bytes in, a parsed skill with findings out. Never raises on content."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, overload

from skillhall._internal.skill.checks import check_body, check_frontmatter
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import (
    BOM,
    MAX_FRONTMATTER,
    MAX_SKILL_MD,
    Block,
    Missing,
    count_lines,
    decode_text,
    find_block,
)
from skillhall._internal.skill.parsed import EMPTY, Frontmatter, KeyCase, ParsedSkill
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlRefused
from skillhall._internal.skill.yaml.result import moved

if TYPE_CHECKING:
    from collections.abc import Iterator

_CUT = "unexpected end of data"
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
        return ParsedSkill(EMPTY, decode_text(data.removeprefix(BOM)).strip(), head.findings)
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
        return Head(EMPTY, (_explain(data, block, complete=complete),), None)
    if block.end - block.start > MAX_FRONTMATTER:
        return Head(EMPTY, (_large_frontmatter(),), block)
    return _parse_block(data, block, folder, keys)


def _parse_block(data: bytes, block: Block, folder: str | None, keys: KeyCase) -> Head:
    raw = data[block.start : block.end]
    if b"\0" in raw:
        return Head(EMPTY, (_nul_byte(data, data.index(b"\0")),), block)
    layout = () if block.is_plain else tuple(_check_layout(data, block))
    try:
        text = decode_text(raw)
        fields, noticed = read_fields(text)
    except UnicodeDecodeError as error:
        return Head(EMPTY, (_not_utf8(data, block.start + error.start),), block)
    except YamlRefused as refusal:
        return Head(EMPTY, (*layout, *moved((refusal.finding,), block.line - 1)), block)
    front = Frontmatter.of(fields, keys)
    facts = check_frontmatter(front, folder, partial(_line_of_field, text, block.line))
    if noticed or layout:
        facts = [*layout, *moved(noticed, block.line - 1), *facts]
    return Head(front, tuple(facts), block)


def _line_of_field(text: str, first: int, field: str) -> int:
    if text.startswith(f"{field}:"):
        return first
    return first + text.count("\n", 0, text.find(f"\n{field}:") + 1)


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
    return find_encoding_fault(data)


def find_encoding_fault(data: bytes, *, complete: bool = True) -> Finding | None:
    """What keeps the bytes from being text; UTF-16 is told as such, not as its NUL bytes."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _not_utf8(data, 0)
    if b"\0" in data:
        return _nul_byte(data, data.index(b"\0"))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A head may end in the middle of a character.
        is_cut = not complete and error.end == len(data) and error.reason == _CUT
        return None if is_cut else _not_utf8(data, error.start)
    return None


def _explain(data: bytes, missing: Missing, *, complete: bool) -> Finding:
    """Why there is no block: the encoding first, since it explains the rest."""
    if (fault := find_encoding_fault(data, complete=complete)) is not None:
        return fault
    if data.startswith(_LFS_POINTER):
        return Finding(
            Code.LFS_POINTER,
            "SKILL.md is a Git LFS pointer; its text was never downloaded",
            1,
            "run 'git lfs pull', or keep SKILL.md out of LFS",
        )
    if missing is Missing.NO_FENCE:
        return Finding(
            Code.NO_FRONTMATTER,
            "there is no frontmatter: the first line is not '---'",
            1,
            "start the file with '---', 'name: …', 'description: …', '---'",
        )
    if len(data) > MAX_FRONTMATTER:
        return _large_frontmatter()
    return Finding(
        Code.UNCLOSED_FRONTMATTER,
        "the frontmatter has no closing '---'",
        1,
        "add a line with three hyphens after the last field",
    )


def _check_layout(data: bytes, block: Block) -> Iterator[Finding]:
    if data.startswith(BOM):
        yield Finding(Code.BOM, "the file starts with a byte order mark", 1, "save it without")
    if block.line > 2:  # noqa: PLR2004 - the opening fence is line 1
        yield Finding(
            Code.LEADING_BLANK, "blank lines stand before the frontmatter", 1, "remove them"
        )
    if b"\r" in data[: block.body]:
        yield Finding(Code.CRLF, "lines end in carriage returns", 1, "save it with plain newlines")


def _large_frontmatter() -> Finding:
    return Finding(
        Code.FRONTMATTER_LARGE,
        f"the frontmatter has more than {MAX_FRONTMATTER} bytes",
        1,
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
