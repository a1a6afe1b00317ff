import pytest

from skillhall._internal.skill.checks import (
    check_body,
    check_description,
    check_frontmatter,
    has_small_body,
    slugify,
    suggest_name,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.yaml.values import Fields, YamlValue

VALID: Fields = {"name": "pdf-tools", "description": "Reads PDF files."}


def check(folder: str | None = "pdf-tools", **fields: YamlValue) -> list[Finding]:
    named = {key.replace("_", "-"): value for key, value in fields.items()}
    return check_frontmatter(Frontmatter.from_fields({**VALID, **named}), folder, lambda _field: 7)


def codes(folder: str | None = "pdf-tools", **fields: YamlValue) -> list[Code]:
    return [finding.code for finding in check(folder, **fields)]


def name_codes(name: str) -> list[Code]:
    return codes(folder=name, name=name)


def test_valid_skill_has_no_findings() -> None:
    assert codes() == []


@pytest.mark.parametrize(
    "name",
    ["a", "0", "a-b-c", "x" * 64, "0-1", "é", "日本語", "straße", "привет", "١٢", "naïve-text"],
)
def test_name_of_letters_digits_and_hyphens_is_valid(name: str) -> None:
    assert name_codes(name) == []


@pytest.mark.parametrize("name", ["ａ", "①", "²", "ⅷ", "ﬁle"])
def test_name_is_checked_in_nfkc_form(name: str) -> None:
    assert name_codes(name) == []


def test_name_matches_folder_with_the_same_normal_form() -> None:
    assert codes(folder="caf\u00e9", name="cafe\u0301") == []
    assert codes(folder="a", name="ａ") == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("x" * 65, Code.NAME_TOO_LONG),
        ("Pdf", Code.NAME_UPPERCASE),
        ("É", Code.NAME_UPPERCASE),
        ("ǅ", Code.NAME_UPPERCASE),
        ("pdf_tools", Code.NAME_CHARACTERS),
        ("pdf tools", Code.NAME_CHARACTERS),
        ("../pdf", Code.NAME_CHARACTERS),
        ("<pdf>", Code.NAME_CHARACTERS),
        (".", Code.NAME_CHARACTERS),
        ("_", Code.NAME_CHARACTERS),
        ("a\nb", Code.NAME_CHARACTERS),
        ("a\u200bb", Code.NAME_CHARACTERS),
        ("ไม้", Code.NAME_MARKS),
        ("हिन्दी", Code.NAME_MARKS),
        ("-", Code.NAME_EDGE_HYPHEN),
        ("-a", Code.NAME_EDGE_HYPHEN),
        ("a-", Code.NAME_EDGE_HYPHEN),
        ("a--b", Code.NAME_DOUBLE_HYPHEN),
    ],
)
def test_each_name_rule_has_its_own_finding(name: str, code: Code) -> None:
    assert name_codes(name) == [code]


def test_name_that_violates_every_rule_has_every_finding() -> None:
    result = codes(name="-A_--\u0e49" + "x" * 60 + "-")
    assert result == [
        Code.NAME_TOO_LONG,
        Code.NAME_UPPERCASE,
        Code.NAME_CHARACTERS,
        Code.NAME_MARKS,
        Code.NAME_EDGE_HYPHEN,
        Code.NAME_DOUBLE_HYPHEN,
        Code.NAME_NOT_FOLDER,
    ]


def test_name_different_from_folder_is_reported() -> None:
    (finding,) = check(folder="other")
    assert finding.code is Code.NAME_NOT_FOLDER
    assert finding.message == "the name 'pdf-tools' differs from the folder 'other'"
    assert finding.line == 7


def test_flat_file_has_no_folder_mismatch() -> None:
    assert codes(folder=None) == []


@pytest.mark.parametrize("name", [None, "", "  ", ["a"], {"a": "b"}, True])
def test_name_that_is_not_text_is_missing(name: YamlValue) -> None:
    assert codes(name=name) == [Code.NAME_MISSING]
    assert codes(folder=None, name=name) == [Code.FLAT_NAME_MISSING]


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({}, "'name' is missing", "add 'name: …'"),
        ({"Name": "a"}, "'name' is missing", "write 'name' instead of 'Name'"),
        ({"name": ""}, "'name' is empty", "write 'name: some text'"),
        ({"name": None}, "'name' is empty", "write 'name: some text'"),
        ({"name": ["a"]}, "'name' is a list, not text", "write 'name: some text'"),
        ({"name": {}}, "'name' is a map, not text", "write 'name: some text'"),
        ({"name": True}, "'name' is a boolean, not text", "write 'name: some text'"),
    ],
)
def test_missing_name_message_describes_the_value(fields: Fields, message: str, hint: str) -> None:
    front = Frontmatter.from_fields({"description": "d", **fields})
    finding = check_frontmatter(front, "a", lambda _field: 2)[0]
    assert (finding.message, finding.hint) == (message, hint)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("d", []),
        ("d" * 1024, []),
        ("d" * 1024 + " \n", []),
        ("d" * 1025, [Code.DESCRIPTION_TOO_LONG]),
        ("😀" * 1024, []),
        ("", [Code.DESCRIPTION_MISSING]),
        (" \n", [Code.DESCRIPTION_MISSING]),
        (None, [Code.DESCRIPTION_MISSING]),
        (["d"], [Code.DESCRIPTION_MISSING]),
    ],
)
def test_description_length_limits(description: YamlValue, expected: list[Code]) -> None:
    assert codes(description=description) == expected


def test_valid_description_has_no_findings() -> None:
    assert list(check_description(Frontmatter.from_fields(VALID), 2)) == []


def test_missing_description_is_reported() -> None:
    findings = check_frontmatter(Frontmatter.from_fields({"name": "a"}), "a", lambda _field: 2)
    assert [finding.code for finding in findings] == [Code.DESCRIPTION_MISSING]


@pytest.mark.parametrize(
    ("compatibility", "expected"),
    [
        ("c", []),
        ("c" * 500, []),
        ("c" * 500 + "\n", []),
        ("c" * 501, [Code.COMPATIBILITY_TOO_LONG]),
        ("", [Code.COMPATIBILITY_EMPTY]),
        ("  ", [Code.COMPATIBILITY_EMPTY]),
        (None, [Code.COMPATIBILITY_EMPTY]),
        (["c"], [Code.COMPATIBILITY_EMPTY]),
    ],
)
def test_compatibility_length_limits(compatibility: YamlValue, expected: list[Code]) -> None:
    assert codes(compatibility=compatibility) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, []),
        ({"a": "b"}, []),
        (None, []),
        ("text", [Code.METADATA_NOT_A_MAP]),
        (["a"], [Code.METADATA_NOT_A_MAP]),
        (True, [Code.METADATA_NOT_A_MAP]),
        ({"a": ["b"]}, [Code.METADATA_NOT_TEXT]),
        ({"a": None, "b": "c"}, [Code.METADATA_NOT_TEXT]),
        ({"a": True}, [Code.METADATA_NOT_TEXT]),
    ],
)
def test_metadata_must_map_text_to_text(metadata: YamlValue, expected: list[Code]) -> None:
    assert codes(metadata=metadata) == expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("Read Write", []),
        ("", []),
        (None, []),
        ("Bash(git add *) Read", []),
        ("Bash(a, b)", []),
        ("Read, Write", [Code.ALLOWED_TOOLS_FORM]),
        ("Bash(a, b), Read", [Code.ALLOWED_TOOLS_FORM]),
        (["Read", "Write"], [Code.ALLOWED_TOOLS_FORM]),
        ([], [Code.ALLOWED_TOOLS_FORM]),
    ],
)
def test_allowed_tools_must_be_text_without_commas(tools: YamlValue, expected: list[Code]) -> None:
    assert codes(allowed_tools=tools) == expected


def test_allowed_tools_hint_shows_the_correct_form() -> None:
    (finding,) = check(allowed_tools=["Read", "Bash(git add *)"])
    assert finding.hint == "write 'allowed-tools: Read Bash(git add *)'"


def test_known_fields_have_no_findings() -> None:
    assert codes(license="MIT", compatibility="git", metadata={}, allowed_tools="Read") == []


def test_unknown_fields_share_one_finding() -> None:
    (finding,) = check(version="1", tags=["a"])
    assert finding.code is Code.UNKNOWN_FIELD
    assert finding.message == "fields that are not in the specification: 'version', 'tags'"


def test_miscased_known_field_is_reported_separately() -> None:
    assert codes(License="MIT", version="1", METADATA={}) == [
        Code.KEY_CASE,
        Code.KEY_CASE,
        Code.UNKNOWN_FIELD,
    ]
    assert codes(License="MIT") == [Code.KEY_CASE]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PDF_Tools", "pdf-tools"),
        ("  a  b  ", "a-b"),
        ("--", "skill"),
        ("", "skill"),
        ("x" * 80, "x" * 64),
        ("x" * 63 + "-y", "x" * 63),
        ("../etc", "etc"),
        ("Ａ", "a"),
        ("Größe", "größe"),
    ],
)
def test_suggested_name_is_valid(text: str, name: str) -> None:
    assert suggest_name(text) == name
    assert name_codes(name) == []


@pytest.mark.parametrize(
    ("body", "large"),
    [
        ("", False),
        ("a\n" * 499 + "a", False),
        ("a\n" * 500 + "a", True),
        ("x" * 21_000, False),
        ("x" * 22_000, True),
    ],
)
def test_body_over_500_lines_or_5000_tokens_is_large(body: str, large: bool) -> None:
    assert [finding.code for finding in check_body(body)] == ([Code.BODY_LARGE] if large else [])


@pytest.mark.parametrize("character", ["a", "\u00e9", "\u4e2d", "\U0001f642"])
@pytest.mark.parametrize("end", ["", "\n" * 500, "\r" * 500])
def test_small_body_is_never_large(character: str, end: str) -> None:
    for count in (0, 3_740, 4_900, 7_480, 14_900, 15_000):
        body = character * count + end
        if has_small_body(body.encode()):
            assert [*check_body(body.replace("\r", "\n"))] == []


def test_usual_body_is_small() -> None:
    assert has_small_body(b"word\n" * 499)
    assert not has_small_body(b"word\n" * 500)


@pytest.mark.parametrize("text", ["", "..", "---", "~/!", "🙂"])
def test_text_without_letters_or_digits_has_no_slug(text: str) -> None:
    assert slugify(text) == ""
    assert suggest_name(text) == "skill"
