"""Playground in a browser, with a scripted model server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.model_server import ModelServer, ToolCall, model_server
from tests.support.session_boards import SessionBoard
from tests.support.skills import make_skill, make_skill_md

ANSWER = "Totals come **first**, then the rows.\n\n<script>window.hit=1</script>"
SCRIPT = (
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "layout.md"}),
    ToolCall("load_skill", {"name": "no-such"}),
    ANSWER,
)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(*SCRIPT) as server:
        yield server


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("stage")
    write_files(folder)
    with run_server(
        folder,
        SKILLHALL_MODEL="openai-chat:scripted",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_API_KEY="sk-secret",
    ) as server:
        yield server


def write_files(folder: Path) -> None:
    text = make_skill_md("csv-report", "Summarizes CSV files.", "# Read the layout\n")
    files = {"layout.md": b"Totals on top."}
    make_skill(folder / ".agents/skills", "csv-report", data=text, files=files)
    narrow = make_skill_md("poems", "Writes poems.")
    make_skill(folder / "verses", "poems", data=narrow)
    (folder / "skillhall.toml").write_text(
        '[[agents]]\nid = "poet"\ndisplayName = "The poet"\nmodel = "openai-chat:other"\n'
        f'instructions = "Rhyme."\nskills = [{{ root = "{folder}/verses" }}]\n'
    )


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def guest(
    request: pytest.FixtureRequest, browser: Browser, stage: ServeProcess, model: ModelServer
) -> Iterator[BrowserSession]:
    model.requests.clear()
    session = BrowserSession.open(browser, stage.url, java_script_enabled=request.param)
    yield session
    session.close()


def send(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_reply_lists_loaded_skills_and_read_files(
    guest: BrowserSession, model: ModelServer
) -> None:
    page = guest.open_page("/skills")
    page.get_by_role("link", name="Playground").click()
    send(page, "Summarize sales.csv.")
    turn = page.get_by_role("article")
    expect(turn.locator(".usage")).to_have_text("4 requests · 40 tokens in · 20 tokens out")
    expect(turn.locator(".user-message")).to_have_text(re.compile("Summarize sales.csv.$"))
    loaded, read, failed = turn.get_by_role("list", name="Agent activity").locator("li").all()
    expect(loaded).to_have_text(re.compile(r"Loaded csv-report \d+ tokens"))
    expect(read).to_have_text(re.compile(r"Read csv-report/layout.md \d+ tokens"))
    expect(failed).to_have_text(re.compile("Failed: load_skill .*no-such"))
    expect(turn.locator("strong")).to_have_text("first")
    expect(turn.locator(".prose")).to_contain_text("<script>")
    expect(page.get_by_label("Message")).to_have_value("")
    assert [len(request.tool_results) for request in model.requests] == [0, 1, 2, 3]
    assert "<name>csv-report</name>" in model.requests[0].system
    assert "# Read the layout" in model.requests[1].tool_results[0]
    assert model.requests[2].tool_results[1] == "Totals on top."


def test_next_message_has_history_and_newly_added_skills(
    guest: BrowserSession, model: ModelServer, stage: ServeProcess, request: pytest.FixtureRequest
) -> None:
    page = guest.open_page("/playground")
    send(page, "First.")
    expect(page.locator(".usage")).to_have_count(1)
    added = f"later-{'plain' if 'without' in request.node.name else 'full'}"
    make_skill(stage.user_skills, added)
    model.requests.clear()
    send(page, "Second.")
    expect(page.locator(".usage")).to_have_count(2)
    assert f"<name>{added}</name>" in model.requests[0].system
    assert model.requests[0].user_messages == ["First.", "Second."]
    guest.open_page("/playground")
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("article")).to_have_count(0)


def test_configured_agent_uses_its_own_skills_and_model(
    guest: BrowserSession, model: ModelServer
) -> None:
    page = guest.open_page("/playground")
    page.get_by_label("Agent", exact=True).select_option(label="The poet")
    send(page, "Write.")
    expect(page.locator(".usage")).to_be_visible()
    assert model.requests[0].system.startswith("Rhyme.")
    assert "<name>poems</name>" in model.requests[0].system
    assert "csv-report" not in model.requests[0].system
    guest.open_page("/playground")
    expect(page.get_by_label("Agent", exact=True)).to_have_value("poet")
    expect(page.get_by_label("Model")).to_have_value("openai-chat:other")


def test_provider_error_is_shown_and_message_stays(
    guest: BrowserSession, model: ModelServer
) -> None:
    page = guest.open_page("/playground")
    model.status = 401
    try:
        send(page, "Are you there?")
        expect(page.get_by_role("alert")).to_contain_text("the provider rejected the API key")
    finally:
        model.status = 200
    expect(page.get_by_label("Message")).to_have_value("Are you there?")
    assert "sk-secret" not in page.content()
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".usage")).to_be_visible()


def test_reply_streams_and_can_be_stopped(
    browser: Browser, stage: ServeProcess, model: ModelServer
) -> None:
    visitor = BrowserSession.open(browser, stage.url)
    page = visitor.open_page("/playground")
    with model.pause_replies() as release:
        send(page, "Slowly.")
        expect(page.locator(".partial-reply")).to_have_text("Totals")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("article")).to_contain_text("Stopped.")
        expect(page.locator(".partial-reply")).to_have_text("Totals")
        page.reload()
        while not page.get_by_role("article").count():  # the server notices the stop soon
            page.reload()
        expect(page.get_by_role("article")).to_contain_text("Totals")
        expect(page.get_by_role("article")).to_contain_text("Stopped.")
        release.set()
    send(page, "Again.")
    expect(page.get_by_text("tokens out")).to_be_visible()
    visitor.close()


def test_skill_and_session_are_tried_in_the_playground(
    guest: BrowserSession, model: ModelServer, stage: ServeProcess
) -> None:
    board = SessionBoard.create(stage.url, "Quarter")
    board.add("Answer in Latin.", "system_prompt")
    page = guest.open_page("/skill/csv-report")
    page.get_by_role("link", name="Try in Playground").click()
    expect(page.get_by_label("Message")).to_have_value("/csv-report ")
    guest.open_page(board.path)
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_label("Agent").locator("option:checked")).to_have_text("Session: Quarter")
    model.requests.clear()
    send(page, "Hello.")
    expect(page.get_by_role("article").locator(".usage")).to_be_visible()
    assert "Answer in Latin." in str(model.requests[0])


def test_playground_is_accessible(browser: Browser, stage: ServeProcess) -> None:
    visitor = BrowserSession.open(browser, stage.url, bypass_csp=True, reduced_motion="reduce")
    page = visitor.open_page("/playground")
    assert visitor.find_accessibility_problems() == []
    send(page, "Summarize sales.csv.")
    expect(page.locator(".usage")).to_be_visible()
    assert visitor.find_accessibility_problems() == []
    visitor.close()


def test_playground_without_model_explains_how_to_set_one(visitor: BrowserSession) -> None:
    page = visitor.open_page("/playground")
    expect(page.get_by_role("heading", name="No model is configured")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_have_count(0)


def test_skill_name_is_completed_while_typing(stage: ServeProcess, browser: Browser) -> None:
    session = BrowserSession.open(browser, stage.url)
    page = session.open_page("/playground")
    message = page.get_by_label("Message")
    message.press_sequentially("/cs")
    option = page.get_by_role("option", name="/csv-report Summarizes CSV files.")
    expect(option).to_have_attribute("aria-selected", "true")
    message.press("Tab")
    expect(message).to_have_value("/csv-report ")
    expect(page.get_by_role("listbox")).to_have_count(0)
    message.fill("/csv")
    option.click()
    expect(message).to_have_value("/csv-report ")
    expect(page.get_by_text("Ctrl Enter Send")).to_be_visible()
    session.close()


def test_conversation_is_saved_as_an_eval_case(guest: BrowserSession, stage: ServeProcess) -> None:
    page = guest.open_page("/playground")
    send(page, "Summarize sales.csv.")
    page.get_by_role("link", name="Save as an eval case").click()
    expect(page.get_by_label("Skill")).to_have_value("csv-report")
    expect(page.get_by_label("Prompt")).to_have_value("Summarize sales.csv.")
    page.get_by_label("Assertions").fill("Totals come first.\nRows follow.")
    page.get_by_role("button", name="Save case").click()
    expect(page.get_by_role("status").first).to_contain_text("Eval case added to csv-report")
    data = json.loads((stage.user_skills / "csv-report/evals/evals.json").read_text())
    case = data["evals"][-1]
    assert (case["id"], case["prompt"]) == (len(data["evals"]), "Summarize sales.csv.")
    assert case["assertions"] == ["Totals come first.", "Rows follow."]
