import pytest
from hypothesis import given

from skillhall._internal.skill.autofix import autofix
from skillhall._internal.skill.parser import parse_skill
from tests.support.strategies import any_bytes

FINE = b"---\nname: pdf-tools\ndescription: Reads PDF files.\n---\n# Steps\n"


def test_a_skill_that_is_fine_is_left_alone() -> None:
    assert autofix(FINE, "pdf-tools") == (FINE, ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbf" + FINE, FINE),
        (b"\n  \n\r\n" + FINE, FINE),
        (FINE.replace(b"name", b"Name"), FINE),
        (FINE.replace(b"pdf-tools", b"PDF_Tools"), FINE),
        (
            FINE.replace(b"Reads PDF", b"Use for: PDF"),
            FINE.replace(b"Reads PDF files.", b'"Use for: PDF files."'),
        ),
        (
            FINE.replace(b"---\n#", b"allowed-tools: [Read, Bash(git add *)]\n---\n#"),
            FINE.replace(b"---\n#", b"allowed-tools: Read Bash(git add *)\n---\n#"),
        ),
        (
            FINE.replace(b"---\n#", b"allowed-tools: Read, Write\n---\n#"),
            FINE.replace(b"---\n#", b"allowed-tools: Read Write\n---\n#"),
        ),
    ],
    ids=["bom", "leading blank", "key case", "name", "colon", "tools list", "tools commas"],
)
def test_what_is_safe_to_mend_is_mended(before: bytes, after: bytes) -> None:
    mended = autofix(before, "pdf-tools")
    assert mended.data == after
    assert len(mended.changes) == 1


@pytest.mark.parametrize(
    "data",
    [
        FINE.replace(b"\n", b"\r\n"),
        FINE.replace(b"pdf-tools", b"other_name"),
        FINE.replace(b"Reads PDF files.", b'"never closed'),
        FINE.replace(b"---\n#", b"allowed-tools: [Read, Write\n---\n#"),
        FINE.replace(b"---\n#", b"metadata:\n\ta: b\n---\n#"),
        FINE.replace(b"---\n#", b"allowed-tools:\n  - Read # always\n---\n#"),
        FINE.replace(b"---\n#", b"name: other\n---\n#"),
        b"# No frontmatter\n",
        b"",
    ],
    ids=[
        "crlf",
        "another name",
        "open quote",
        "open list",
        "tabs",
        "comments",
        "duplicate key",
        "no frontmatter",
        "empty",
    ],
)
def test_what_needs_a_person_is_left_alone(data: bytes) -> None:
    assert autofix(data, "pdf-tools") == (data, ())


def test_carriage_returns_stay_when_something_else_is_mended() -> None:
    before = FINE.replace(b"\n", b"\r\n").replace(b"name", b"Name")
    assert autofix(before, "pdf-tools").data == FINE.replace(b"\n", b"\r\n")


@given(any_bytes)
def test_mending_never_raises_and_is_done_after_once(data: bytes) -> None:
    mended = autofix(data, "pdf-tools")
    assert autofix(mended.data, "pdf-tools").changes == ()
    before, after = parse_skill(data, "pdf-tools"), parse_skill(mended.data, "pdf-tools")
    assert after.body == before.body
