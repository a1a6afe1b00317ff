from pathlib import Path

import pytest
from lsprotocol.types import MarkupContent, Position

from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.lsp.document_features import DocumentFeatures
from skillhall._internal.lsp.positions import TextLines
from skillhall._internal.policy.profiles import SPECIFICATION
from tests.support.skills import make_skill

TEXT = """\
---
name: pdf-tools
description: Reads PDF files.
allowed-tools:
  - Read
own: value
---
# One

[form](form.md) [none](none.md) [out](../x.md)

### Three
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return make_skill(tmp_path, files={"form.md": b"text", "image.png": b"\xff"})


def features(skill: Path, text: str = TEXT) -> DocumentFeatures:
    document = OpenDocument.open(str(skill / "SKILL.md"), text, SPECIFICATION)
    return DocumentFeatures(document, TextLines(text, "utf-16"))


def hover(skill: Path, line: int, column: int) -> str:
    found = features(skill).hover(Position(line, column))
    if found is None:
        return ""
    assert isinstance(found.contents, MarkupContent)
    return found.contents.value


def labels(skill: Path, text: str) -> list[str]:
    """Return the completions at the end of a text that has no closing fence."""
    lines = TextLines(text, "utf-16")
    return [one.label for one in features(skill, text).complete(lines.position_at(len(text)))]


@pytest.mark.parametrize(
    ("line", "column", "text"),
    [
        (1, 0, "tokens in each system prompt"),
        (4, 3, "without asking"),
        (5, 0, "not in the specification"),
        (7, 0, "**One**: about "),
        (9, 10, "`form.md`: 4 bytes, about 1 token when"),
        (9, 25, "`none.md` is not in the skill."),
        (9, 41, "outside the skill"),
        (8, 0, ""),
    ],
)
def test_hover_describes_what_is_at_the_position(
    skill: Path, line: int, column: int, text: str
) -> None:
    assert text in hover(skill, line, column)
    assert bool(text) == bool(hover(skill, line, column))


def test_outline_nests_a_section_below_the_next_higher_level(skill: Path) -> None:
    front, one = features(skill).list_symbols()
    assert [child.name for child in front.children or ()] == [
        "name",
        "description",
        "allowed-tools",
        "own",
    ]
    assert [child.name for child in one.children or ()] == ["Three"]


def test_document_without_frontmatter_has_an_outline_and_tokens(skill: Path) -> None:
    plain = features(skill, "# Only\n")
    assert [one.name for one in plain.list_symbols()] == ["Only"]
    assert len(plain.list_lenses()) == 2


def test_links_lead_to_files_that_exist(skill: Path) -> None:
    assert features(skill).find_file(Position(9, 25)) is None
    found = features(skill).find_file(Position(9, 10))
    assert found is not None
    assert found.range.start == Position(9, 7)


def test_fields_are_completed_before_the_frontmatter_is_closed(skill: Path) -> None:
    assert labels(skill, "---\nname: a\n")[:2] == ["description", "license"]
    assert "Grep" in labels(skill, "---\nallowed-tools:\n  - Gr")
    assert labels(skill, "---\n# note\n  - x") == []
    assert labels(skill, "---\nown: v") == []


def test_completion_replaces_only_the_last_word(skill: Path) -> None:
    text = "---\ncompatibility: Designed for Cl"
    found = features(skill, text).complete(Position(1, len("compatibility: Designed for Cl")))
    edits = {one.label: one.text_edit for one in found}
    edit = edits["Claude Code"]
    assert edit is not None
    assert edit.new_text == "Claude Code"
    assert getattr(edit, "range").start == Position(1, len("compatibility: Designed for "))  # noqa: B009


def first_lens(skill: Path, text: str) -> str:
    command = features(skill, text).list_lenses()[0].command
    return command.title if command else ""


def test_lens_counts_the_clients_that_do_not_load_the_skill(skill: Path) -> None:
    plain = "---\nname: pdf-tools\ndescription: Reads PDF files.\n---\n# One\n"
    assert first_lens(skill, plain).endswith("when the skill is loaded")
    broken = plain.replace("Reads PDF files.", "Use when: a PDF is involved.")
    assert first_lens(skill, broken).endswith("; of 13 clients, 7 drop it")
