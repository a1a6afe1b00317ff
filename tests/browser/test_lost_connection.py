"""Pages while the server is stopped and started again: nothing is lost."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.support.archives import zip_of
from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.session_boards import (
    SessionBoard,
    card,
    drag_over,
    start_drag,
    wait_for_moves,
    zone_titles,
)
from tests.support.skills import make_skill, make_skill_md


class Switch:
    """Server that is stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self._stack, self._folder = ExitStack(), folder
        self.server = self._run("0")

    def _run(self, port: str) -> ServeProcess:
        return self._stack.enter_context(run_server(self._folder, port=port))

    def stop(self) -> None:
        """Stop the server."""
        self._stack.close()

    def start(self) -> None:
        """Start the server again."""
        self._run(self.server.url.rpartition(":")[2])


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    switch = Switch(tmp_path_factory.mktemp("switched"))
    yield switch
    switch.stop()


@pytest.fixture
def guest(browser: Browser, switch: Switch) -> Iterator[BrowserSession]:
    session = BrowserSession.open(browser, switch.server.url)
    yield session
    # The browser itself logs requests that failed.
    lost = re.compile("net::ERR_|htmx:|Failed to fetch|network error")
    session.problems[:] = [problem for problem in session.problems if not lost.search(problem)]
    session.close()


def expect_bar(page: Page, *, shown: bool = True) -> None:
    bar = page.get_by_role("alert").filter(has_text="The server can't be reached")
    expect(bar).to_have_count(1 if shown else 0)


def test_move_is_sent_after_the_server_is_back(guest: BrowserSession, switch: Switch) -> None:
    board = SessionBoard.create(switch.server.url)
    for text in ("One", "Two", "Three"):
        board.add(text)
    page = guest.open_page(board.path)
    start_drag(page, "Three")
    switch.stop()
    drag_over(page, card(page, "One"))
    page.mouse.up()
    expect(zone_titles(page)).to_have_text(["Three", "One", "Two"])
    expect_bar(page)
    switch.start()
    wait_for_moves(page)
    assert board.list_texts() == ["Three", "One", "Two"]
    expect_bar(page, shown=False)
    expect(zone_titles(page)).to_have_text(["Three", "One", "Two"])


def test_edit_is_sent_after_the_server_is_back(guest: BrowserSession, switch: Switch) -> None:
    board = SessionBoard.create(switch.server.url)
    board.add("Draft")
    folder = make_skill(switch.server.user_skills, "kept")
    page = guest.open_page("/skill/kept/edit")
    page.get_by_label("Description").fill("Typed while the server was down.")
    other = guest.context.new_page()
    other.goto(switch.server.url + board.path)
    other.get_by_role("link", name="Draft").click()
    other.get_by_label("Text (Markdown)").fill("Final")
    switch.stop()
    for each in (page, other):
        each.get_by_role("button", name="Save").click()
        expect_bar(each)
    switch.start()
    expect(page.get_by_role("status").first).to_contain_text("Saved")
    assert b"Typed while the server was down." in (folder / "SKILL.md").read_bytes()
    expect(zone_titles(other)).to_have_text(["Final"])


def test_import_continues_after_the_server_is_back(guest: BrowserSession, switch: Switch) -> None:
    archive = zip_of({"arrived/SKILL.md": make_skill_md("arrived")})
    page = guest.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {"name": "some.zip", "mimeType": "application/zip", "buffer": archive}
    )
    switch.stop()
    page.get_by_role("button", name="Continue").first.click()
    expect_bar(page)
    switch.start()
    expect(page.get_by_role("checkbox", name="arrived")).to_be_checked()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text("arrived")


def test_unsaved_text_is_restored_on_the_form(guest: BrowserSession, switch: Switch) -> None:
    make_skill(switch.server.user_skills, "left")
    page = guest.open_page("/skill/left/edit")
    page.get_by_label("Instructions").fill("Half a thought")
    guest.open_page("/skills")
    guest.open_page("/skill/left/edit")
    expect(page.get_by_label("Instructions")).to_have_value("Half a thought")
    expect(page.get_by_text("Your unsaved text was restored.")).to_be_visible()
    page.get_by_role("button", name="Discard it").click()
    expect(page.get_by_label("Instructions")).not_to_have_value("Half a thought")
    guest.open_page("/skill/left/edit")
    expect(page.get_by_text("Your unsaved text was restored.")).to_have_count(0)


def test_unsaved_text_is_restored_on_the_board(guest: BrowserSession, switch: Switch) -> None:
    board = SessionBoard.create(switch.server.url)
    board.add("One")
    page = guest.open_page(board.path)
    page.get_by_role("link", name="One").click()
    page.get_by_label("Text (Markdown)").fill("One and a half")
    questions: list[str] = []

    def accept(dialog: Dialog) -> None:
        questions.append(dialog.type)
        dialog.accept()

    page.once("dialog", accept)
    page.reload()
    assert questions == ["beforeunload"]
    expect(page.get_by_label("Text (Markdown)")).to_have_value("One and a half")
    page.get_by_role("button", name="Save").click()
    expect(zone_titles(page)).to_have_text(["One and a half"])
    page.reload()
    expect(page.get_by_label("Text (Markdown)")).to_have_count(0)
