"""What a board shows: titles, excerpts, views, and the look of every type."""

from pathlib import Path

import pytest

from skillhall._internal import web
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.sessions.board_pages import CARDS_PER_ZONE, BoardFilter, block_title
from skillhall._internal.web.translations import load_translations
from skillhall._internal.workspace import Block, SkillOrigin, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.validation import build_content

FOLDER = Path(web.__file__).parent


def block(text: str, skill: SkillOrigin | None = None) -> Block:
    content = build_content("note", Zone.WORKING, text, skill)
    return Block("b1", "s1", "a", content, 1, "", "")


@pytest.mark.parametrize(
    ("text", "title", "excerpt"),
    [
        ("", "", ""),
        ("# Style\n\nShort  words.\n", "Style", "Short words."),
        ("###", "###", ""),
        ("a" * 71, "a" * 70 + "…", "a"),
        ("x\n" + "y " * 300, "x", "y " * 89 + "y…"),
    ],
)
def test_a_block_is_called_by_its_first_line(text: str, title: str, excerpt: str) -> None:
    found = block_title(block(text))
    assert (found[0], found[1].strip()) == (title, excerpt)


def test_a_skill_is_called_by_its_name() -> None:
    origin = SkillOrigin("pdf", "Reads PDF.", "upload", "pdf.zip")
    assert block_title(block("# Other", origin)) == ("pdf", "Reads PDF.")


def test_a_view_is_kept_in_the_address_and_nonsense_is_not() -> None:
    asked = BoardFilter.from_query(
        {"type": "note", "stable": "130", "working": "x", "permanent": "-5"}
    )
    assert asked == BoardFilter("note", CARDS_PER_ZONE, 130, CARDS_PER_ZONE)
    assert asked.board_url("s1") == "/session/s1?type=note&stable=130"
    assert (
        BoardFilter.from_query({"type": "<b>", "stable": "9" * 30}).board_url("s1") == "/session/s1"
    )


def test_every_type_has_its_colour_its_icon_and_its_name() -> None:
    css = (FOLDER / "static/board.css").read_text(encoding="utf-8")
    symbols = (FOLDER / "templates/board_parts.html").read_text(encoding="utf-8")
    for one in BLOCK_TYPES.values():
        assert f".type-{one.id} {{ --type: {one.colour}; }}" in css
        assert f'<symbol id="type-{one.id}"' in symbols
        assert load_translations("en")(f"type.{one.id}") == one.label


def test_a_notice_takes_back_a_change_or_a_deleted_block_and_leads_nowhere_else() -> None:
    assert Notice("deleted", "x", "s1/b1").undo_url == "/session/s1/blocks/b1/restore"
    assert Notice("deleted", "x", "c1").undo_url == "/changes/c1/undo"
    assert Notice("deleted", "x").undo_url == ""
    assert (
        Notice("deleted", "x", "//evil/..").undo_url == "/session//blocks/%2Fevil%2F../restore"
    )
