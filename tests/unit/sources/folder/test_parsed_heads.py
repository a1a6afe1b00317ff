"""A head from a scan is the same as one that is parsed again."""

import pytest

from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import check_skill_md
from skillhall._internal.sources.folder.candidate import RawHead
from skillhall._internal.sources.folder.candidate_parser import parse_candidates
from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
from tests.support.skills import make_skill_md

VALID = make_skill_md("pdf", "Reads PDF files.", "# Steps\n")


def store(data: bytes) -> ParsedHeads:
    heads = ParsedHeads()
    head = RawHead("pdf", "SKILL.md", "pdf", data[:200], len(data), None)
    parse_candidates([head], KeyCase.EXACT, parsed_heads=heads)
    return heads


@pytest.mark.parametrize(
    "data",
    [
        VALID,
        VALID + b"more\n" * 100,
        make_skill_md("other", "é", "é"),
        b"---\nname: PDF\ndescription: a: b\nmetadata:\n  n: 1\n---\n",
        b"---\nname: [\n---\n",
        b"---\nName: a\nallowed-tools: [Bash, Read]\n---\n",
    ],
)
def test_stored_head_gives_the_same_result_as_parsing(data: bytes) -> None:
    head = store(data).find(data, "pdf")
    assert head is not None
    assert check_skill_md(data, "pdf", KeyCase.EXACT, head) == check_skill_md(data, "pdf")


def test_head_is_found_for_the_same_frontmatter_and_folder_only() -> None:
    heads = store(VALID)
    assert heads.find(VALID.replace(b"Steps", b"Other steps"), "pdf") is not None
    assert heads.find(VALID.replace(b"PDF", b"DOC"), "pdf") is None
    assert heads.find(VALID, "doc") is None
    assert heads.find(VALID, None) is None


@pytest.mark.parametrize("rest", [b"\0", b"\xff", b"\xc3"])
def test_body_that_is_not_text_is_not_the_same(rest: bytes) -> None:
    assert store(VALID).find(VALID + rest, "pdf") is None
    assert store(VALID + rest + b"x" * 200).find(VALID, "pdf") is None


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + VALID, VALID.replace(b"\n", b"\r\n"), b"# A\n"])
def test_unusual_heads_are_not_stored(data: bytes) -> None:
    assert store(data).find(data, "pdf") is None
