"""Parses a SKILL.md. Invalid content becomes findings, never an exception."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, overload

from skillhall._internal.skill.checks import check_body, check_frontmatter, has_small_body
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import (
    BOM,
    LFS_SIGNATURE,
    MAX_FRONTMATTER_BYTES,
    MAX_SKILL_MD_BYTES,
    FrontmatterBlock,
    MissingFrontmatter,
    count_line_breaks,
    decode_text,
    find_frontmatter,
)
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter, KeyCase, ParsedSkill
from skillhall._internal.skill.yaml.lenient_reader import read_fields
from skillhall._internal.skill.yaml.values import Fields
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError, shift_lines

_PLAIN_FENCE = b"\n---"  # the rest of its line is white space, which is stripped with the body
_TRUNCATED_REASON = "unexpected end of data"  # of a UnicodeDecodeError


PlainHead: TypeAlias = "tuple[Frontmatter, tuple[Finding, ...]]"


class ParsedFrontmatter(NamedTuple):
    """Frontmatter of a SKILL.md, and the location of its block if there is one."""

    frontmatter: Frontmatter
    findings: tuple[Finding, ...]
    block: FrontmatterBlock | None


class CheckedSkillMd(NamedTuple):
    """A complete SKILL.md as `ParsedSkill`, with the offset of its body instead of the text."""

    frontmatter: Frontmatter
    findings: tuple[Finding, ...]
    body_start: int | None  # `None` without frontmatter, and if the file is not text


def parse_skill(
    data: bytes, folder: str | None = None, key_case: KeyCase = KeyCase.EXACT
) -> ParsedSkill:
    """Parse a complete SKILL.md; `folder` is the name of its folder, if it has one.

    ```python
    from skillhall import parse_skill

    with open("skills/pdf-tools/SKILL.md", "rb") as file:
        parsed = parse_skill(file.read(), "pdf-tools")
    print(parsed.frontmatter.name, parsed.body, parsed.findings)
    ```
    """
    front, findings, body_start = check_skill_md(data, folder, key_case)
    if body_start is not None:
        return ParsedSkill(front, decode_text(data[body_start:]).strip(), findings)
    is_text = len(data) <= MAX_SKILL_MD_BYTES and find_encoding_error(data) is None
    return ParsedSkill(
        front, decode_text(data.removeprefix(BOM)).strip() if is_text else "", findings
    )


def check_skill_md(
    data: bytes,
    folder: str | None = None,
    key_case: KeyCase = KeyCase.EXACT,
    plain_head: PlainHead | None = None,
) -> CheckedSkillMd:
    """Parse a complete SKILL.md, except for its body.

    `plain_head` is the result of `parse_plain_head` for this file, if it is known.
    """
    if len(data) > MAX_SKILL_MD_BYTES:
        return CheckedSkillMd(EMPTY_FRONTMATTER, (build_too_large_finding(len(data)),), None)
    plain_head = plain_head or parse_plain_head(data, folder, key_case, is_complete=True)
    if plain_head is not None:
        front, findings = plain_head
        body_start = data.find(_PLAIN_FENCE, 3) + len(_PLAIN_FENCE)
    else:
        if (encoding_error := find_encoding_error(data)) is not None:
            return CheckedSkillMd(EMPTY_FRONTMATTER, (encoding_error,), None)
        front, findings, block = parse_frontmatter(data, folder, key_case)
        if block is None:
            return CheckedSkillMd(EMPTY_FRONTMATTER, findings, None)
        body_start = block.body_start
    if not has_small_body(data):
        findings = (*findings, *check_body(decode_text(data[body_start:]).strip()))
    return CheckedSkillMd(front, findings, body_start)


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
    """Parse the frontmatter only, as listings do.

    With `complete=False`, `data` is only the start of a file, and the result is `None` if more of
    the file is needed. Otherwise, the result is never `None`.
    """
    block = find_frontmatter(data, is_complete=complete)
    if isinstance(block, MissingFrontmatter):
        if block is MissingFrontmatter.UNCLOSED and not complete:
            return None
        finding = _explain_missing_frontmatter(data, block, is_complete=complete)
        return ParsedFrontmatter(EMPTY_FRONTMATTER, (finding,), None)
    raw = data[block.start : block.end]
    is_large = len(raw) > MAX_FRONTMATTER_BYTES
    if is_large or b"\0" in raw:
        finding = _build_large_frontmatter_finding() if is_large else _build_nul_byte_finding(data)
        return ParsedFrontmatter(EMPTY_FRONTMATTER, (finding,), block)
    layout = () if block.is_plain else tuple(_check_layout(data, block))
    try:
        text = decode_text(raw)
        fields, yaml_findings = read_fields(text)
    except UnicodeDecodeError as error:
        finding = _build_not_utf8_finding(data, block.start + error.start)
        return ParsedFrontmatter(EMPTY_FRONTMATTER, (finding,), block)
    except YamlReadError as error:
        shifted = shift_lines((error.finding,), block.first_line - 1)
        return ParsedFrontmatter(EMPTY_FRONTMATTER, (*layout, *shifted), block)

    front, findings = _check_fields(fields, text, block.first_line, folder, key_case)
    if yaml_findings or layout:
        findings = [*layout, *shift_lines(yaml_findings, block.first_line - 1), *findings]
    return ParsedFrontmatter(front, tuple(findings), block)


def parse_plain_head(
    data: bytes, folder: str | None, key_case: KeyCase, *, is_complete: bool
) -> PlainHead | None:
    """Parse the start of a typical SKILL.md; `None` if it needs `parse_frontmatter`.

    This is a fast path for listings of tens of thousands of skills, with the same result as
    `parse_frontmatter`. A result other than `None` also means that
    `find_encoding_error` finds nothing.
    """
    end = find_plain_fence(data)
    if not end:
        return None
    try:
        if data.isascii():
            text = data[4:end].decode("ascii")
        else:
            # The start of a file may end in the middle of a character.
            whole, _ = utf_8_decode(data, "strict", is_complete)
            text = whole[4 : whole.find("\n---", 3) + 1]
        if b"\0" in data or "\r" in text:
            return None
        fields, yaml_findings = read_fields(text)
    except (UnicodeDecodeError, YamlReadError):
        return None
    front, findings = _check_fields(fields, text, 2, folder, key_case)
    if yaml_findings:
        findings = shift_lines(yaml_findings, 1) + findings
    return front, tuple(findings)


def find_plain_fence(data: bytes) -> int:
    """Return the offset of the closing fence, if both fences are plain, else 0.

    The result of `parse_plain_head` depends only on the bytes up to the end of this fence, and on
    whether the others are text.
    """
    end = data.find(_PLAIN_FENCE, 3) + 1
    is_closed = 0 < end <= MAX_FRONTMATTER_BYTES and data[end : end + 4] == b"---\n"
    return end if is_closed and data[:4] == b"---\n" else 0


def _check_fields(
    fields: Fields, text: str, first_line: int, folder: str | None, key_case: KeyCase
) -> tuple[Frontmatter, list[Finding]]:
    def find_line(field: str) -> int:
        # A field that is missing, or not found like this, is reported on the first line.
        before = 0 if text.startswith(f"{field}:") else text.find(f"\n{field}:") + 1
        return first_line + text.count("\n", 0, before)

    front = Frontmatter.from_fields(fields, key_case)
    return front, check_frontmatter(front, folder, find_line)


def build_too_large_finding(size: int) -> Finding:
    """Build the finding for a SKILL.md over the size limit, from its size alone."""
    message = f"SKILL.md has {size} bytes; the limit is {MAX_SKILL_MD_BYTES}"
    return Finding(Code.TOO_LARGE, message, 1, "move details into other files of the skill")


def find_encoding_error(data: bytes, *, is_complete: bool = True) -> Finding | None:
    """Return a finding if the bytes are not UTF-8 text, else `None`."""
    if data.isascii() and b"\0" not in data:
        return None
    # UTF-16 is reported as an encoding error, not because of its NUL bytes.
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _build_not_utf8_finding(data, 0)
    if b"\0" in data:
        return _build_nul_byte_finding(data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # The start of a file may end in the middle of a character.
        is_cut = not is_complete and error.end == len(data) and error.reason == _TRUNCATED_REASON
        return None if is_cut else _build_not_utf8_finding(data, error.start)
    return None


def _explain_missing_frontmatter(
    data: bytes, missing: MissingFrontmatter, *, is_complete: bool
) -> Finding:
    """Return the finding for a file without frontmatter."""
    # A wrong encoding comes first: it explains why no fence was found.
    if (encoding_error := find_encoding_error(data, is_complete=is_complete)) is not None:
        return encoding_error
    if data.startswith(LFS_SIGNATURE):
        message = "SKILL.md is a Git LFS pointer; its content was not downloaded"
        return Finding(
            Code.LFS_POINTER, message, 1, "run 'git lfs pull', or keep SKILL.md out of LFS"
        )
    if missing is MissingFrontmatter.NO_FENCE:
        message = "no frontmatter: the first line is not '---'"
        hint = "start the file with '---', 'name: …', 'description: …', '---'"
        return Finding(Code.NO_FRONTMATTER, message, 1, hint)
    if len(data) > MAX_FRONTMATTER_BYTES:
        return _build_large_frontmatter_finding()
    message = "the frontmatter has no closing '---'"
    hint = "add a line with three hyphens after the last field"
    return Finding(Code.UNCLOSED_FRONTMATTER, message, 1, hint)


def _check_layout(data: bytes, block: FrontmatterBlock) -> Iterator[Finding]:
    if data.startswith(BOM):
        yield Finding(Code.BOM, "the file starts with a byte order mark", 1, "remove it")
    if block.first_line > 2:  # noqa: PLR2004 - the opening fence is line 1
        message = "there are blank lines before the frontmatter"
        yield Finding(Code.LEADING_BLANK, message, 1, "remove them")
    if b"\r" in data[: block.body_start]:
        yield Finding(
            Code.CRLF, "lines end in CR LF or CR", 1, "save the file with LF line endings"
        )


def _build_large_frontmatter_finding() -> Finding:
    message = f"the frontmatter has more than {MAX_FRONTMATTER_BYTES} bytes"
    return Finding(Code.FRONTMATTER_LARGE, message, 1, "move data into another file of the skill")


def _build_nul_byte_finding(data: bytes) -> Finding:
    line = count_line_breaks(data, 0, data.index(b"\0")) + 1
    return Finding(Code.NUL_BYTE, "the file contains a NUL byte", line, "save it as plain text")


def _build_not_utf8_finding(data: bytes, offset: int) -> Finding:
    message = f"the file is not UTF-8 (byte {offset + 1} is 0x{data[offset]:02x})"
    line = count_line_breaks(data, 0, offset) + 1
    return Finding(Code.NOT_UTF8, message, line, "save it as UTF-8")
