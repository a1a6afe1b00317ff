import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import MAX_FRONTMATTER_BYTES, MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, KeyCase
from skillhall._internal.skill.parser import (
    ParsedFrontmatter,
    build_too_large_finding,
    parse_frontmatter,
    parse_skill,
)
from tests.support.skills import make_skill_md

VALID = make_skill_md("pdf", "Reads PDF files.", "# Steps\n")


def parse_codes(data: bytes, folder: str | None = "pdf") -> list[tuple[Code, int | None]]:
    """Return codes and lines; both parsers must agree."""
    parsed, head = parse_skill(data, folder), parse_frontmatter(data, folder)
    assert parsed.findings[: len(head.findings)] == head.findings
    assert parsed.frontmatter == head.frontmatter
    return [(finding.code, finding.line) for finding in parsed.findings]


def test_valid_skill_is_parsed_without_findings() -> None:
    parsed = parse_skill(VALID, "pdf")
    assert parsed.frontmatter.fields == {"name": "pdf", "description": "Reads PDF files."}
    assert parsed.body == "# Steps"
    assert parsed.findings == ()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbf" + VALID, [(Code.BOM, 1)]),
        (VALID.replace(b"\n", b"\r\n"), [(Code.CRLF, 1)]),
        (VALID.replace(b"\n", b"\r"), [(Code.CRLF, 1)]),
        (b"\n\n" + VALID, [(Code.LEADING_BLANK, 1)]),
        (
            b"\xef\xbb\xbf\r\n" + VALID.replace(b"\n", b"\r\n"),
            [(Code.BOM, 1), (Code.LEADING_BLANK, 1), (Code.CRLF, 1)],
        ),
        (VALID.replace(b"---\n", b"--- \n"), []),
        (VALID.replace(b"# Steps", b"a\r\nb"), []),
    ],
)
def test_layout_findings_do_not_affect_parsing(
    data: bytes, expected: list[tuple[Code, int]]
) -> None:
    assert parse_codes(data) == expected
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
def test_unreadable_file_has_one_finding_with_line(
    data: bytes, expected: list[tuple[Code, int]]
) -> None:
    assert parse_codes(data) == expected
    assert parse_skill(data).frontmatter == EMPTY_FRONTMATTER


def test_empty_block_has_no_name_or_description() -> None:
    assert parse_codes(b"---\n---\n") == [(Code.NAME_MISSING, 2), (Code.DESCRIPTION_MISSING, 2)]


def test_file_over_the_size_limit_is_not_parsed() -> None:
    data = VALID + b"x" * MAX_SKILL_MD_BYTES
    assert parse_skill(data).findings == (build_too_large_finding(len(data)),)
    assert parse_skill(data).findings[0].code is Code.TOO_LARGE


@pytest.mark.parametrize("invalid", [b"\0", b"\xff"])
def test_invalid_bytes_in_body_are_found_only_by_full_parse(invalid: bytes) -> None:
    code = Code.NUL_BYTE if invalid == b"\0" else Code.NOT_UTF8
    data = VALID + b"\n" + invalid
    assert [(f.code, f.line) for f in parse_skill(data, "pdf").findings] == [(code, 7)]
    assert parse_frontmatter(data, "pdf").findings == ()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("lead", "blanks"), [(b"", 0), (b"\xef\xbb\xbf", 0), (b"{}{}", 2), (b"\xef\xbb\xbf{}", 1)]
)
def test_finding_lines_count_from_the_top_of_the_file(lead: bytes, blanks: int, end: bytes) -> None:
    lines = [b"---", b"# c", b"name: Pdf", b"description: ''", b"version: 1", b"Name: x", b"---"]
    data = lead.replace(b"{}", end) + end.join(lines) + end
    lines_by_code = {code: line for code, line in parse_codes(data, "pdf") if line != 1}
    assert lines_by_code == {
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
def test_yaml_findings_have_lines_of_the_file(line: bytes, code: Code) -> None:
    expected = 6 if code is Code.DUPLICATE_KEY else 5
    data = b"\n---\n# one\n\n" + line + b"\n---\n"
    assert (code, expected) in parse_codes(data)


def test_flow_value_and_unquoted_colon_give_both_findings() -> None:
    data = b"---\nname: pdf\ndescription: Use when: x\ntags: [a]\n---\n"
    assert parse_codes(data) == [
        (Code.YAML_REPAIRED, 3),
        (Code.YAML_FLOW, 4),
        (Code.UNKNOWN_FIELD, 4),
    ]


def test_typed_scalars_in_text_fields_stay_text() -> None:
    head = parse_frontmatter(b"---\nname: 0123\ndescription: 2024-01-01\n---\n", "0123")
    assert (head.frontmatter.name, head.frontmatter.description) == ("0123", "2024-01-01")
    assert [finding.code for finding in head.findings] == [Code.NOT_TEXT, Code.NOT_TEXT]


def test_hyphens_inside_a_value_do_not_close_the_block() -> None:
    data = b"---\nname: pdf\ndescription: a --- b\nnote: |\n  ---\n  x\n---\nbody"
    parsed = parse_skill(data, "pdf")
    assert parsed.frontmatter.description == "a --- b"
    assert parsed.frontmatter.fields["note"] == "---\nx\n"
    assert parsed.body == "body"


def test_unknown_fields_are_preserved() -> None:
    data = make_skill_md("pdf", hooks="\n  a:\n    - b: [1, true, null]", version="1.10")
    fields = parse_frontmatter(data, "pdf").frontmatter.fields
    assert fields["hooks"] == {"a": [{"b": ["1", True, None]}]}
    assert fields["version"] == "1.10"


@pytest.mark.parametrize("line_break", [b"\n", b"\r\n", b"\r"])
def test_large_body_is_reported_and_preserved(line_break: bytes) -> None:
    parsed = parse_skill(VALID + b"%sline" % line_break * 600, "pdf")
    assert [finding.code for finding in parsed.findings] == [Code.BODY_LARGE]
    assert parsed.body.endswith("line")


def test_file_without_frontmatter_has_body() -> None:
    assert parse_skill(b"\n# Title\r\ntext\n").body == "# Title\ntext"


def test_miscased_keys_are_read_with_any_key_case() -> None:
    data = b"---\nName: pdf\nDescription: d\n---\n"
    assert parse_frontmatter(data, "pdf", KeyCase.ANY).frontmatter.name == "pdf"
    assert parse_frontmatter(data, "pdf").frontmatter.name == ""


@pytest.mark.parametrize(
    "data", [b"---\nname: a", b"---\nname: a\n---", b"---", b"---\nname: \xc3"]
)
def test_partial_data_before_closing_fence_needs_more(data: bytes) -> None:
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
def test_partial_data_may_end_inside_a_character(data: bytes, code: Code) -> None:
    head = parse_frontmatter(data, "a", KeyCase.EXACT, complete=False)
    assert isinstance(head, ParsedFrontmatter)
    assert [finding.code for finding in head.findings] == [code]
