import pytest
from hypothesis import given

from skillhall._internal.skill.autofix import autofix, find_fixes
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill
from tests.support.strategies import any_bytes

VALID = b"---\nname: pdf-tools\ndescription: Reads PDF files.\n---\n# Steps\n"


def test_valid_skill_is_unchanged() -> None:
    assert autofix(VALID, "pdf-tools") == (VALID, ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbf" + VALID, VALID),
        (b"\n  \n\r\n" + VALID, VALID),
        (VALID.replace(b"name", b"Name"), VALID),
        (VALID.replace(b"pdf-tools", b"PDF_Tools"), VALID),
        (
            VALID.replace(b"Reads PDF", b"Use for: PDF"),
            VALID.replace(b"Reads PDF files.", b'"Use for: PDF files."'),
        ),
        (
            VALID.replace(b"---\n#", b"allowed-tools: [Read, Bash(git add *)]\n---\n#"),
            VALID.replace(b"---\n#", b"allowed-tools: Read Bash(git add *)\n---\n#"),
        ),
        (
            VALID.replace(b"---\n#", b"allowed-tools: Read, Write\n---\n#"),
            VALID.replace(b"---\n#", b"allowed-tools: Read Write\n---\n#"),
        ),
    ],
    ids=["bom", "leading blank", "key case", "name", "colon", "tools list", "tools commas"],
)
def test_safe_fixes_are_applied(before: bytes, after: bytes) -> None:
    result = autofix(before, "pdf-tools")
    assert result.data == after
    assert len(result.changes) == 1


@pytest.mark.parametrize(
    "data",
    [
        VALID.replace(b"\n", b"\r\n"),
        VALID.replace(b"pdf-tools", b"other_name"),
        VALID.replace(b"Reads PDF files.", b'"never closed'),
        VALID.replace(b"---\n#", b"allowed-tools: [Read, Write\n---\n#"),
        VALID.replace(b"---\n#", b"allowed-tools:\n  read: true\n---\n#"),
        VALID.replace(b"---\n#", b"metadata:\n\ta: b\n---\n#"),
        VALID.replace(b"---\n#", b"allowed-tools:\n  - Read # always\n---\n#"),
        VALID.replace(b"---\n#", b"name: other\n---\n#"),
        b"# No frontmatter\n",
        b"",
    ],
    ids=[
        "crlf",
        "another name",
        "open quote",
        "open list",
        "map of tools",
        "tabs",
        "comments",
        "duplicate key",
        "no frontmatter",
        "empty",
    ],
)
def test_unsafe_fixes_are_not_applied(data: bytes) -> None:
    assert autofix(data, "pdf-tools") == (data, ())


def test_fix_preserves_carriage_returns() -> None:
    before = VALID.replace(b"\n", b"\r\n").replace(b"name", b"Name")
    assert autofix(before, "pdf-tools").data == VALID.replace(b"\n", b"\r\n")


@given(any_bytes)
def test_autofix_never_raises_and_is_idempotent(data: bytes) -> None:
    result = autofix(data, "pdf-tools")
    assert autofix(result.data, "pdf-tools").changes == ()
    before, after = parse_skill(data, "pdf-tools"), parse_skill(result.data, "pdf-tools")
    assert after.body == before.body


def test_each_fix_can_be_applied_alone() -> None:
    data = b"---\nname: pdf-tools\ndescription: a: b\nLicense: MIT\n---\n"
    quoted, renamed = find_fixes(data, "pdf-tools")
    assert quoted.change == "quoted the value of 'description'"
    assert quoted.codes == {Code.YAML_REPAIRED}
    assert quoted.data == data.replace(b"a: b", b'"a: b"')
    assert renamed.data == data.replace(b"License", b"license")


def test_fix_that_needs_another_one_first_is_not_offered_alone() -> None:
    data = b"---\nName: Pdf_Tools\ndescription: d\n---\n"
    assert [fix.change for fix in find_fixes(data, "pdf-tools")] == [
        "renamed the field 'Name' to 'name'"
    ]
    assert len(autofix(data, "pdf-tools").changes) == 2
