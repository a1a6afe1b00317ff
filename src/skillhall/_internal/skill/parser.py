"""Bytes in, a parsed skill with findings out. Never raises on content."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, overload

from skillhall._internal.skill.checks import check_body, check_frontmatter
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import (
    BOM,
    MAX_FRONTMATTER_BYTES,
    MAX_SKILL_MD_BYTES,
    FrontmatterBlock,
    MissingFrontmatter,
    count_line_breaks,
    decode_text,
    find_frontmatter,
)
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter, KeyCase, ParsedSkill
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlReadError
from skillhall._internal.skill.yaml.result import shift_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRUNCATED_REASON = "unexpected end of data"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class ParsedFrontmatter(NamedTuple):
    """The frontmatter of a SKILL.md, and where its block lies (`None` without one)."""

    frontmatter: Frontmatter
    findings: tuple[Finding, ...]
    block: FrontmatterBlock | None


def parse_skill(
    data: bytes, folder: str | None = None, keys: KeyCase = KeyCase.EXACT
) -> ParsedSkill:
    """A whole SKILL.md. `folder` is the name of the folder it stands in, if it has one."""
    if (unreadable := _find_read_error(data)) is not None:
        return ParsedSkill(EMPTY_FRONTMATTER, "", (unreadable,))
    head = parse_frontmatter(data, folder, keys)
    if head.block is None:
        return ParsedSkill(
            EMPTY_FRONTMATTER, decode_text(data.removeprefix(BOM)).strip(), head.findings
        )
    body = decode_text(data[head.block.body_start :]).strip()
    return ParsedSkill(head.frontmatter, body, (*head.findings, *check_body(body)))


@overload
def parse_frontmatter(
    data: bytes, folder: str | None = None, key_case: KeyCase = KeyCase.EXACT
) -> ParsedFrontmatter: ...
@overload
def parse_frontmatter(
    data: bytes, folder: str | None, key_case: KeyCase, *, complete: bool
) -> ParsedFrontmatter | None: ...
def parse_frontmatter(
    data: bytes,
    folder: str | None = None,
    key_case: KeyCase = KeyCase.EXACT,
    *,
    complete: bool = True,
) -> ParsedFrontmatter | None:
    """The frontmatter alone: what a listing needs, from as few bytes as hold it.

    With `complete=False` the bytes are a file's first ones; `None` asks for more of them.
    """
    block = find_frontmatter(data, is_complete=complete)
    if isinstance(block, MissingFrontmatter):
        if block is MissingFrontmatter.UNCLOSED and not complete:
            return None
        return ParsedFrontmatter(
            EMPTY_FRONTMATTER,
            (_explain_missing_frontmatter(data, block, is_complete=complete),),
            None,
        )
    if block.end - block.start > MAX_FRONTMATTER_BYTES:
        return ParsedFrontmatter(EMPTY_FRONTMATTER, (_build_large_frontmatter_finding(),), block)
    return _parse_block(data, block, folder, key_case)


def _parse_block(
    data: bytes, block: FrontmatterBlock, folder: str | None, key_case: KeyCase
) -> ParsedFrontmatter:
    raw = data[block.start : block.end]
    if b"\0" in raw:
        return ParsedFrontmatter(
            EMPTY_FRONTMATTER, (_build_nul_byte_finding(data, data.index(b"\0")),), block
        )
    layout = () if block.is_plain else tuple(_check_layout(data, block))
    try:
        text = decode_text(raw)
        fields, noticed = read_fields(text)
    except UnicodeDecodeError as error:
        return ParsedFrontmatter(
            EMPTY_FRONTMATTER, (_build_not_utf8_finding(data, block.start + error.start),), block
        )
    except YamlReadError as refusal:
        return ParsedFrontmatter(
            EMPTY_FRONTMATTER,
            (*layout, *shift_lines((refusal.finding,), block.first_line - 1)),
            block,
        )
    front = Frontmatter.from_fields(fields, key_case)
    facts = check_frontmatter(front, folder, partial(_find_field_line, text, block.first_line))
    if noticed or layout:
        facts = [*layout, *shift_lines(noticed, block.first_line - 1), *facts]
    return ParsedFrontmatter(front, tuple(facts), block)


def _find_field_line(text: str, first: int, field: str) -> int:
    if text.startswith(f"{field}:"):
        return first
    return first + text.count("\n", 0, text.find(f"\n{field}:") + 1)


def build_too_large_finding(size: int) -> Finding:
    """The finding for a SKILL.md beyond `MAX_SKILL_MD`: known before a byte is read."""
    return Finding(
        Code.TOO_LARGE,
        f"SKILL.md has {size} bytes; at most {MAX_SKILL_MD_BYTES} are read",
        1,
        "move details into files beside it",
    )


def _find_read_error(data: bytes) -> Finding | None:
    if len(data) > MAX_SKILL_MD_BYTES:
        return build_too_large_finding(len(data))
    return find_encoding_error(data)


def find_encoding_error(data: bytes, *, is_complete: bool = True) -> Finding | None:
    """What keeps the bytes from being text; UTF-16 is told as such, not as its NUL bytes."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _build_not_utf8_finding(data, 0)
    if b"\0" in data:
        return _build_nul_byte_finding(data, data.index(b"\0"))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A head may end in the middle of a character.
        is_cut = not is_complete and error.end == len(data) and error.reason == _TRUNCATED_REASON
        return None if is_cut else _build_not_utf8_finding(data, error.start)
    return None


def _explain_missing_frontmatter(
    data: bytes, missing: MissingFrontmatter, *, is_complete: bool
) -> Finding:
    """Why there is no block: the encoding first, since it explains the rest."""
    if (fault := find_encoding_error(data, is_complete=is_complete)) is not None:
        return fault
    if data.startswith(_LFS_POINTER):
        return Finding(
            Code.LFS_POINTER,
            "SKILL.md is a Git LFS pointer; its text was never downloaded",
            1,
            "run 'git lfs pull', or keep SKILL.md out of LFS",
        )
    if missing is MissingFrontmatter.NO_FENCE:
        return Finding(
            Code.NO_FRONTMATTER,
            "there is no frontmatter: the first line is not '---'",
            1,
            "start the file with '---', 'name: …', 'description: …', '---'",
        )
    if len(data) > MAX_FRONTMATTER_BYTES:
        return _build_large_frontmatter_finding()
    return Finding(
        Code.UNCLOSED_FRONTMATTER,
        "the frontmatter has no closing '---'",
        1,
        "add a line with three hyphens after the last field",
    )


def _check_layout(data: bytes, block: FrontmatterBlock) -> Iterator[Finding]:
    if data.startswith(BOM):
        yield Finding(Code.BOM, "the file starts with a byte order mark", 1, "save it without")
    if block.first_line > 2:  # noqa: PLR2004 - the opening fence is line 1
        yield Finding(
            Code.LEADING_BLANK, "blank lines stand before the frontmatter", 1, "remove them"
        )
    if b"\r" in data[: block.body_start]:
        yield Finding(Code.CRLF, "lines end in carriage returns", 1, "save it with plain newlines")


def _build_large_frontmatter_finding() -> Finding:
    return Finding(
        Code.FRONTMATTER_LARGE,
        f"the frontmatter has more than {MAX_FRONTMATTER_BYTES} bytes",
        1,
        "move data into a file beside SKILL.md",
    )


def _build_nul_byte_finding(data: bytes, offset: int) -> Finding:
    return Finding(
        Code.NUL_BYTE,
        "the file holds a NUL byte",
        _find_line_number(data, offset),
        "save it as plain text",
    )


def _build_not_utf8_finding(data: bytes, offset: int) -> Finding:
    return Finding(
        Code.NOT_UTF8,
        f"the file is not UTF-8 (byte {offset + 1} is 0x{data[offset]:02x})",
        _find_line_number(data, offset),
        "save it as UTF-8",
    )


def _find_line_number(data: bytes, offset: int) -> int:
    return count_line_breaks(data, 0, offset) + 1
