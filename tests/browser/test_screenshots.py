"""Screenshots of the guide: `UPDATE_SCREENSHOTS=1 pytest tests/browser/test_screenshots.py`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.archives import zip_of
from tests.support.browsers import ROOT, BrowserSession, ServeProcess, run_server
from tests.support.model_server import ToolCall, model_server
from tests.support.session_boards import SessionBoard
from tests.support.skills import make_skill, make_skill_md

IMAGES = ROOT / "docs" / "images"
MAX_BYTES = 150_000
SKILLS = {
    "csv-report": "Summarizes CSV files. Use when asked for totals or a table.",
    "meeting-notes": "Turns a transcript into decisions and tasks. Use after a meeting.",
    "pdf-tools": "Reads, joins and fills PDF files. Use when a file ends in .pdf.",
    "release-check": "Walks through the list before a release. Use when a version is tagged.",
}
BODY = "# {name}\n\nRead [the layout](references/layout.md) first.\n\n1. Read the header.\n"
ANSWER = """**Sales rose by 12%** in the third quarter.

| Region | Total |
|---|---:|
| North | 4,180 |
| South | 3,905 |
"""
SCRIPT = (
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "references/layout.md"}),
    ANSWER,
)


@pytest.fixture(scope="module")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("demo")
    files = {"references/layout.md": b"Totals first, then one row for each region.\n"}
    for name, description in SKILLS.items():
        data = make_skill_md(name, description, BODY.format(name=name))
        make_skill(folder / ".agents/skills", name, data=data, files=files)
    shipped = make_skill_md("skill-writing", "Helps to write a good skill.")
    make_skill(folder / ".agents/sys.skills", "skill-writing", data=shipped)
    with (
        model_server(*SCRIPT) as model,
        run_server(
            folder,
            SKILLHALL_MODEL="openai-chat:gpt-5",
            OPENAI_BASE_URL=f"{model.url}/v1",
            OPENAI_API_KEY="none",
            SKILLHALL_FOLDER_SCAN="on",
        ) as server,
    ):
        yield server


def upload_zip(page: Page) -> None:
    archive = zip_of(
        {
            "invoices/SKILL.md": make_skill_md("invoices", "Checks invoices. Use for each bill."),
            "pdf-tools/SKILL.md": make_skill_md("pdf-tools", "Reads and signs PDF files."),
        }
    )
    page.get_by_label("Choose a file").set_input_files(
        {"name": "team-skills.zip", "mimeType": "application/zip", "buffer": archive}
    )
    page.get_by_role("button", name="Continue").first.click()
    expect(page.get_by_role("checkbox")).to_have_count(2)


def chat(page: Page) -> None:
    page.get_by_label("Message").fill("How did we do in the third quarter? See sales.csv.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".usage")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")


def fill_board(page: Page) -> None:
    server = page.url.partition("/sessions")[0]
    board = SessionBoard.create(server, "Quarterly report", working=400, total=4000)
    board.add("You are a careful analyst. Ask before you guess.", "system_prompt")
    board.add("Write for people who have two minutes.", "guideline")
    board.add("# csv-report\n\nTotals first, then one row for each region.", "reference")
    board.add("Compare with the second quarter.", "note")
    board.add("How did we do in the third quarter?", "user_message")
    page.goto(board.server + board.path)
    expect(page.get_by_role("heading", name="Compare with")).to_be_visible()


def wait_for_heading(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()


SCREENSHOTS = [
    ("skills", "/skills", wait_for_heading, 1280, "light"),
    ("skills-dark", "/skills", wait_for_heading, 1280, "dark"),
    ("skills-phone", "/skills", wait_for_heading, 390, "light"),
    ("skill", "/skill/csv-report", wait_for_heading, 1280, "light"),
    ("review", "/skills/import", upload_zip, 1280, "light"),
    ("board", "/sessions", fill_board, 1280, "light"),
    ("settings", "/sources", wait_for_heading, 1280, "light"),
    ("playground", "/playground", chat, 1280, "light"),
]


@pytest.mark.parametrize(("name", "path", "act", "width", "scheme"), SCREENSHOTS)
def test_screenshot_is_written(  # noqa: PLR0913, PLR0917 - one parameter per column
    browser: Browser,
    demo_server: ServeProcess,
    name: str,
    path: str,
    act: Callable[[Page], None],
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    size: ViewportSize = {"width": width, "height": 760}
    visitor = BrowserSession.open(browser, demo_server.url, viewport=size, color_scheme=scheme)
    act(visitor.open_page(path))
    IMAGES.mkdir(exist_ok=True)
    file: Path = IMAGES / f"{name}.png"
    visitor.page.screenshot(path=file, animations="disabled")
    visitor.close()
    assert file.stat().st_size < MAX_BYTES
