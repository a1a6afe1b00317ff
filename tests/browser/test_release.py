"""An installed release in a browser: its wheel alone, in an empty environment."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsers import Visitor, serving
from tests.support.releases import build, export_checkout, find_python, install
from tests.support.session_boards import Board, card, carry, grab, order, sent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(export_checkout(tmp_path_factory.mktemp("clone")))


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_a_card_can_be_dragged_on_a_server_installed_from_a_wheel(
    browser: Browser, wheel: Path, tmp_path: Path, version: str
) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    program = install(wheel, "server", python, tmp_path / "environment")
    folder = tmp_path / "hall"
    folder.mkdir()
    with serving(folder, program=[str(program)]) as hall:
        board = Board.make(hall.url)
        board.add("Rule", "system_prompt")
        board.add("Note")
        visitor = Visitor.enter(browser, hall.url)
        page = visitor.go(board.path)
        grab(page, "Note")
        carry(page, card(page, "Rule"))
        page.mouse.up()
        expect(order(page, "permanent")).to_have_count(2)
        sent(page)
        assert sorted(board.texts("PERMANENT")) == ["Note", "Rule"]
        visitor.leave()
