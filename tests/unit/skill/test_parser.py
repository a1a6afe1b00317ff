import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter import MAX_FRONTMATTER_BYTES, MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, KeyCase
from skillhall._internal.skill.parser import (
    ParsedFrontmatter,
    build_too_large_finding,
    parse_frontmatter,
    parse_skill,
)
from tests.support.skills import make_skill_md

GOOD = make_skill_md("pdf", "Reads PDF files.", "# Steps\n")


def found(data: bytes, folder: str | None = "pdf") -> list[tuple[Code, int | None]]:
    """Codes and lines; the same for the whole file and for its head."""
    parsed, head = parse_skill(data, folder), parse_frontmatter(data, folder)
    assert parsed.findings[: len(head.findings)] == head.findings
    assert parsed.frontmatter == head.frontmatter
    return [(finding.code, finding.line) for finding in parsed.findings]


def test_a_good_skill_is_parsed_without_findings() -> None:
    parsed = parse_skill(GOOD, "pdf")
    assert parsed.frontmatter.fields == {"name": "pdf", "description": "Reads PDF files."}
    assert parsed.body == "# Steps"
    assert parsed.findings == ()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbf" + GOOD, [(Code.BOM, 1)]),
        (GOOD.replace(b"\n", b"\r\n"), [(Code.CRLF, 1)]),
        (GOOD.replace(b"\n", b"\r"), [(Code.CRLF, 1)]),
        (b"\n\n" + GOOD, [(Code.LEADING_BLANK, 1)]),
        (
            b"\xef\xbb\xbf\r\n" + GOOD.replace(b"\n", b"\r\n"),
            [(Code.BOM, 1), (Code.LEADING_BLANK, 1), (Code.CRLF, 1)],
        ),
        (GOOD.replace(b"---\n", b"--- \n"), []),
        (GOOD.replace(b"# Steps", b"a\r\nb"), []),
    ],
)
def test_the_layout_of_a_file_is_information(data: bytes, expected: list[tuple[Code, int]]) -> None:
    assert found(data) == expected
    assert parse_skill(data).frontmatter.name == "pdf"
    assert "\r" not in parse_skill(data).body


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", [(Code.NO_FRONTMATTER, 1)]),
        (b"# Title\n", [(Code.NO_FRONTMATTER, 1)]),
        (b"---\nname: pdf\n", [(Code.UNCLOSED_FRONTMATTER, 1)]),
        (b"---\nname: pdf\n----\n", [(Code.UNCLOSED_FRONTMATTER, 1)]),
        (b"---\na: " + b"x" * MAX_FRONTMATTER_BYTES, [(Code.FRONTMATTER_LARGE, 1)]),
        (b"---\na: " + b"x" * MAX_FRONTMATTER_BYTES + b"\n---\n", [(Code.FRONTMATTER_LARGE, 1)]),
        (b"---\nname: \xff\n---\n", [(Code.NOT_UTF8, 2)]),
        (b"---\na: b\nname: \xc0\xaf\n---\n", [(Code.NOT_UTF8, 3)]),
        (b"\xff\xfe", [(Code.NOT_UTF8, 1)]),
        (b"text\n\xe9\n", [(Code.NOT_UTF8, 2)]),
        (b"---\nname: \0\n---\n", [(Code.NUL_BYTE, 2)]),
        (b"\0", [(Code.NUL_BYTE, 1)]),
        (b"version https://git-lfs.github.com/spec/v1\noid x\n", [(Code.LFS_POINTER, 1)]),
        (b"---\n- a\n---\n", [(Code.YAML_NOT_A_MAP, 2)]),
        (b"---\na: b\nc: !t d\n---\n", [(Code.YAML_TAG, 3)]),
        (b"---\na: b\nc: &x d\ne: *x\n---\n", [(Code.YAML_ALIAS, 3)]),
        (b"---\na: b\nc: d\xc2\x85\n---\n", [(Code.ODD_LINE_BREAK, 3)]),
        (b"---\na: b\nc: d\x1b\n---\n", [(Code.CONTROL_CHARACTER, 3)]),
        (b'---\na: b\nc: "\\e"\n---\n', [(Code.CONTROL_CHARACTER, 2)]),
        (b'---\n"\\0": b\n---\n', [(Code.CONTROL_CHARACTER, 2)]),
    ],
)
def test_what_cannot_be_read_is_one_finding_at_its_line(
    data: bytes, expected: list[tuple[Code, int]]
) -> None:
    assert found(data) == expected
    assert parse_skill(data).frontmatter == EMPTY_FRONTMATTER


def test_an_empty_block_lacks_name_and_description() -> None:
    assert found(b"---\n---\n") == [(Code.NAME_MISSING, 2), (Code.DESCRIPTION_MISSING, 2)]


def test_a_file_beyond_its_bound_is_not_parsed() -> None:
    data = GOOD + b"x" * MAX_SKILL_MD_BYTES
    assert parse_skill(data).findings == (build_too_large_finding(len(data)),)
    assert parse_skill(data).findings[0].code is Code.TOO_LARGE


@pytest.mark.parametrize("junk", [b"\0", b"\xff"])
def test_junk_in_the_body_is_found_when_the_whole_file_is_parsed(junk: bytes) -> None:
    code = Code.NUL_BYTE if junk == b"\0" else Code.NOT_UTF8
    data = GOOD + b"\n" + junk
    assert [(f.code, f.line) for f in parse_skill(data, "pdf").findings] == [(code, 7)]
    assert parse_frontmatter(data, "pdf").findings == ()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("lead", "blanks"), [(b"", 0), (b"\xef\xbb\xbf", 0), (b"{}{}", 2), (b"\xef\xbb\xbf{}", 1)]
)
def test_lines_are_counted_from_the_top_of_the_file(lead: bytes, blanks: int, end: bytes) -> None:
    lines = [b"---", b"# c", b"name: Pdf", b"description: ''", b"version: 1", b"Name: x", b"---"]
    data = lead.replace(b"{}", end) + end.join(lines) + end
    lines_found = {code: line for code, line in found(data, "pdf") if line != 1}
    assert lines_found == {
        Code.NAME_UPPERCASE: 3 + blanks,
        Code.NAME_NOT_FOLDER: 3 + blanks,
        Code.DESCRIPTION_MISSING: 4 + blanks,
        Code.UNKNOWN_FIELD: 5 + blanks,
        Code.KEY_CASE: 6 + blanks,
    }


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"d: a: b", Code.YAML_REPAIRED),
        (b"d: 'a", Code.YAML_REPAIRED),
        (b"name: 0123", Code.NOT_TEXT),
        (b"description: x\ndescription: y", Code.DUPLICATE_KEY),
        (b"d: [a]", Code.YAML_FLOW),
    ],
)
def test_findings_of_the_yaml_readers_keep_their_line(line: bytes, code: Code) -> None:
    expected = 6 if code is Code.DUPLICATE_KEY else 5
    data = b"\n---\n# one\n\n" + line + b"\n---\n"
    assert (code, expected) in found(data)


def test_a_flow_value_beside_an_unquoted_colon_gives_both_findings() -> None:
    data = b"---\nname: pdf\ndescription: Use when: x\ntags: [a]\n---\n"
    assert found(data) == [
        (Code.YAML_REPAIRED, 3),
        (Code.YAML_FLOW, 4),
        (Code.UNKNOWN_FIELD, 4),
    ]


def test_typed_text_stays_as_written() -> None:
    head = parse_frontmatter(b"---\nname: 0123\ndescription: 2024-01-01\n---\n", "0123")
    assert (head.frontmatter.name, head.frontmatter.description) == ("0123", "2024-01-01")
    assert [finding.code for finding in head.findings] == [Code.NOT_TEXT, Code.NOT_TEXT]


def test_a_hyphen_fence_inside_a_value_does_not_cut_it() -> None:
    data = b"---\nname: pdf\ndescription: a --- b\nnote: |\n  ---\n  x\n---\nbody"
    parsed = parse_skill(data, "pdf")
    assert parsed.frontmatter.description == "a --- b"
    assert parsed.frontmatter.fields["note"] == "---\nx\n"
    assert parsed.body == "body"


def test_unknown_fields_are_kept_verbatim() -> None:
    data = make_skill_md("pdf", hooks="\n  a:\n    - b: [1, true, null]", version="1.10")
    fields = parse_frontmatter(data, "pdf").frontmatter.fields
    assert fields["hooks"] == {"a": [{"b": ["1", True, None]}]}
    assert fields["version"] == "1.10"


def test_a_large_body_is_a_finding_and_stays() -> None:
    parsed = parse_skill(GOOD + b"\nline" * 600, "pdf")
    assert [finding.code for finding in parsed.findings] == [Code.BODY_LARGE]
    assert parsed.body.endswith("line")


def test_a_file_without_frontmatter_keeps_its_text() -> None:
    assert parse_skill(b"\n# Title\r\ntext\n").body == "# Title\ntext"


def test_keys_of_any_case_are_read_where_that_is_asked() -> None:
    data = b"---\nName: pdf\nDescription: d\n---\n"
    assert parse_frontmatter(data, "pdf", KeyCase.ANY).frontmatter.name == "pdf"
    assert parse_frontmatter(data, "pdf").frontmatter.name == ""


@pytest.mark.parametrize(
    "data", [b"---\nname: a", b"---\nname: a\n---", b"---", b"---\nname: \xc3"]
)
def test_a_head_that_ends_before_the_fence_asks_for_more(data: bytes) -> None:
    assert parse_frontmatter(data, "a", KeyCase.EXACT, complete=False) is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"# Title \xe2\x82", Code.NO_FRONTMATTER),
        (b"# Title \xe2\x82 x", Code.NOT_UTF8),
        (b"# Title \xff", Code.NOT_UTF8),
        (b"\xfe\xff\0-", Code.NOT_UTF8),
    ],
)
def test_a_head_may_end_inside_a_character(data: bytes, code: Code) -> None:
    head = parse_frontmatter(data, "a", KeyCase.EXACT, complete=False)
    assert isinstance(head, ParsedFrontmatter)
    assert [finding.code for finding in head.findings] == [code]
