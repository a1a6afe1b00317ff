"""Whatever the bytes: an answer, and the same answer from the head as from the whole file."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import (
    MAX_FRONTMATTER_BYTES,
    FrontmatterBlock,
    find_frontmatter,
    is_frontmatter_complete,
)
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, KeyCase
from skillhall._internal.skill.parser import ParsedFrontmatter, parse_frontmatter, parse_skill
from tests.support.strategies import any_bytes, any_text, files, skill_md_like

folders = st.one_of(st.none(), any_text)
key_cases = st.sampled_from(list(KeyCase))


def assert_well_formed(findings: tuple[Finding, ...], data: bytes) -> None:
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for finding in findings:
        assert finding.code in Code
        assert finding.message
        assert finding.line is None or 1 <= finding.line <= lines


@given(files, folders, key_cases)
@example(b"", None, KeyCase.EXACT)
@example(b"---\n---", "a", KeyCase.ANY)
@example(b"---\n" + b"[" * MAX_FRONTMATTER_BYTES, "a", KeyCase.EXACT)
def test_parsing_a_file_never_raises(data: bytes, folder: str | None, keys: KeyCase) -> None:
    parsed = parse_skill(data, folder, keys)
    assert_well_formed(parsed.findings, data)
    assert "\r" not in parsed.body


@given(files, folders, key_cases, st.booleans())
def test_parsing_a_head_never_raises(
    data: bytes, folder: str | None, keys: KeyCase, complete: bool
) -> None:
    head = parse_frontmatter(data, folder, keys, complete=complete)
    if head is None:
        assert not complete
    else:
        assert_well_formed(head.findings, data)


@given(skill_md_like, folders, key_cases)
def test_the_head_of_a_readable_file_says_what_the_file_says(
    data: bytes, folder: str | None, keys: KeyCase
) -> None:
    parsed, head = parse_skill(data, folder, keys), parse_frontmatter(data, folder, keys)
    if {Code.NUL_BYTE, Code.NOT_UTF8}.isdisjoint(finding.code for finding in parsed.findings):
        assert parsed.frontmatter == head.frontmatter
        assert parsed.findings[: len(head.findings)] == head.findings


@given(skill_md_like, any_bytes, folders, key_cases, st.data())
def test_a_head_cut_after_the_closing_fence_is_enough(
    data: bytes, more: bytes, folder: str | None, keys: KeyCase, choice: st.DataObject
) -> None:
    whole = data + more
    block = find_frontmatter(whole)
    if not isinstance(block, FrontmatterBlock):
        return
    cut = choice.draw(st.integers(block.body_start, len(whole)))
    head = parse_frontmatter(whole[:cut], folder, keys, complete=False)
    assert head in (None, parse_frontmatter(whole, folder, keys))
    if cut > block.body_start:
        assert isinstance(head, ParsedFrontmatter)
        assert is_frontmatter_complete(whole[:cut])


@given(skill_md_like, folders, key_cases, st.integers(0, 200))
def test_a_head_cut_inside_the_block_asks_for_more_or_says_the_same(
    data: bytes, folder: str | None, keys: KeyCase, cut: int
) -> None:
    block = find_frontmatter(data)
    if isinstance(block, FrontmatterBlock) and block.start <= cut < block.end:
        assert parse_frontmatter(data[:cut], folder, keys, complete=False) is None
        assert not is_frontmatter_complete(data[:cut])


@given(st.text(max_size=200))
def test_the_body_is_the_text_behind_the_fence(text: str) -> None:
    data = b"---\nname: a\ndescription: b\n---\n" + text.encode("utf-8", "replace")
    parsed = parse_skill(data, "a")
    if "\0" in text:
        assert parsed.frontmatter is EMPTY_FRONTMATTER
    else:
        expected = data[31:].decode().replace("\r\n", "\n").replace("\r", "\n")
        assert parsed.body == expected.strip()


@pytest.mark.parametrize("keys", list(KeyCase))
@given(data=skill_md_like)
def test_parsing_twice_gives_the_same(data: bytes, keys: KeyCase) -> None:
    assert parse_skill(data, "a", keys) == parse_skill(data, "a", keys)
