"""An installed release in a browser: its wheel alone, in an empty environment."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsers import BrowserSession, run_server
from tests.support.releases import export_checkout
from tests.support.session_boards import (
    SessionBoard,
    card,
    drag_over,
    start_drag,
    wait_for_moves,
    zone_titles,
)
from tools.distributions import build, find_python, install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(export_checkout(tmp_path_factory.mktemp("clone")))


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_card_is_dragged_on_server_installed_from_wheel(
    browser: Browser, wheel: Path, tmp_path: Path, version: str
) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    program = install(wheel, "server", python, tmp_path / "environment")
    folder = tmp_path / "hall"
    folder.mkdir()
    with run_server(folder, program=str(program)) as hall:
        board = SessionBoard.create(hall.url)
        board.add("Rule", "system_prompt")
        board.add("Note")
        visitor = BrowserSession.open(browser, hall.url)
        page = visitor.open_page(board.path)
        start_drag(page, "Note")
        drag_over(page, card(page, "Rule"))
        page.mouse.up()
        expect(zone_titles(page, "permanent")).to_have_count(2)
        wait_for_moves(page)
        assert sorted(board.list_texts("PERMANENT")) == ["Note", "Rule"]
        visitor.close()
