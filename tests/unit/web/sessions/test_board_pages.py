"""Board pages: titles, excerpts, filters and block types."""

from pathlib import Path

import pytest

from skillhall._internal import web
from skillhall._internal.web.assets import load_assets
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.sessions.board_pages import CARDS_PER_ZONE, BoardFilter, block_title
from skillhall._internal.web.translations import LANGUAGES, load_translations
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
def test_block_title_is_its_first_line(text: str, title: str, excerpt: str) -> None:
    actual_title, actual_excerpt = block_title(block(text))
    assert (actual_title, actual_excerpt.strip()) == (title, excerpt)


def test_skill_block_title_is_its_name() -> None:
    origin = SkillOrigin("pdf", "Reads PDF.", "upload", "pdf.zip")
    assert block_title(block("# Other", origin)) == ("pdf", "Reads PDF.")


def test_board_filter_url_ignores_invalid_values() -> None:
    query = {"type": "note", "stable": "130", "working": "x", "permanent": "-5"}
    board_filter = BoardFilter.from_query(query)
    assert board_filter == BoardFilter("note", "", CARDS_PER_ZONE, 130, CARDS_PER_ZONE)
    assert board_filter.board_url("s1") == "/session/s1?type=note&stable=130"
    invalid = BoardFilter.from_query({"type": "<b>", "stable": "9" * 30})
    assert invalid.board_url("s1") == "/session/s1"


@pytest.mark.parametrize("language", LANGUAGES)
def test_language_files_name_exactly_the_block_types(language: str) -> None:
    messages = load_translations(language).messages
    names = {key.removeprefix("type.") for key in messages if key.startswith("type.")}
    assert names == set(BLOCK_TYPES)


def test_english_label_is_the_text_of_the_pages() -> None:
    for block_type in BLOCK_TYPES.values():
        assert load_translations("en")(f"type.{block_type.id}") == block_type.label


def test_stylesheets_and_templates_know_no_block_type_of_their_own() -> None:
    css = (FOLDER / "static/board.css").read_text(encoding="utf-8")
    symbols = (FOLDER / "templates/board_parts.html").read_text(encoding="utf-8")
    for block_type in BLOCK_TYPES.values():
        assert f"type-{block_type.id}" not in css + symbols
        assert block_type.colour not in css
        rule = f".type-{block_type.id} {{ --type: {block_type.colour}; }}"
        assert rule in load_assets()["block-types.css"].data.decode()


def test_notice_undo_url_stays_on_this_server() -> None:
    assert Notice("deleted", "x", "s1/b1").undo_url == "/session/s1/blocks/b1/restore"
    assert Notice("deleted", "x", "c1").undo_url == "/changes/c1/undo"
    assert Notice("deleted", "x").undo_url == ""
    forged = Notice("deleted", "x", "//evil/..")
    assert forged.undo_url == "/session//blocks/%2Fevil%2F../restore"
