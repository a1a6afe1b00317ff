"""Properties of parsing: never raises, and partial data gives the same result."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import (
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
def test_parse_skill_never_raises(data: bytes, folder: str | None, key_case: KeyCase) -> None:
    parsed = parse_skill(data, folder, key_case)
    assert_well_formed(parsed.findings, data)
    assert "\r" not in parsed.body


@given(files, folders, key_cases, st.booleans())
def test_parse_frontmatter_never_raises(
    data: bytes, folder: str | None, key_case: KeyCase, complete: bool
) -> None:
    head = parse_frontmatter(data, folder, key_case, complete=complete)
    if head is None:
        assert not complete
    else:
        assert_well_formed(head.findings, data)


@given(skill_md_like, folders, key_cases)
def test_both_parsers_agree_on_readable_files(
    data: bytes, folder: str | None, key_case: KeyCase
) -> None:
    parsed, head = parse_skill(data, folder, key_case), parse_frontmatter(data, folder, key_case)
    if {Code.NUL_BYTE, Code.NOT_UTF8}.isdisjoint(finding.code for finding in parsed.findings):
        assert parsed.frontmatter == head.frontmatter
        assert parsed.findings[: len(head.findings)] == head.findings


@given(skill_md_like, any_bytes, folders, key_cases, st.data())
def test_data_up_to_the_closing_fence_is_enough(
    data: bytes, more: bytes, folder: str | None, key_case: KeyCase, choice: st.DataObject
) -> None:
    complete_data = data + more
    block = find_frontmatter(complete_data)
    if not isinstance(block, FrontmatterBlock):
        return
    cut = choice.draw(st.integers(block.body_start, len(complete_data)))
    head = parse_frontmatter(complete_data[:cut], folder, key_case, complete=False)
    assert head in (None, parse_frontmatter(complete_data, folder, key_case))
    if cut > block.body_start:
        assert isinstance(head, ParsedFrontmatter)
        assert is_frontmatter_complete(complete_data[:cut])


@given(skill_md_like, folders, key_cases, st.integers(0, 200))
def test_data_cut_inside_the_block_needs_more(
    data: bytes, folder: str | None, key_case: KeyCase, cut: int
) -> None:
    block = find_frontmatter(data)
    if isinstance(block, FrontmatterBlock) and block.start <= cut < block.end:
        assert parse_frontmatter(data[:cut], folder, key_case, complete=False) is None
        assert not is_frontmatter_complete(data[:cut])


@given(st.text(max_size=200))
def test_body_is_the_text_after_the_fence(text: str) -> None:
    data = b"---\nname: a\ndescription: b\n---\n" + text.encode("utf-8", "replace")
    parsed = parse_skill(data, "a")
    if "\0" in text:
        assert parsed.frontmatter is EMPTY_FRONTMATTER
    else:
        expected = data[31:].decode().replace("\r\n", "\n").replace("\r", "\n")
        assert parsed.body == expected.strip()


@pytest.mark.parametrize("key_case", list(KeyCase))
@given(data=skill_md_like)
def test_parsing_is_deterministic(data: bytes, key_case: KeyCase) -> None:
    assert parse_skill(data, "a", key_case) == parse_skill(data, "a", key_case)
