"""The main stories with a keyboard and by role and name alone, as a screen reader tells them."""

import io
import zipfile

import pytest
from playwright.sync_api import Page, expect

from tests.support.browsers import BrowserSession, ServeProcess
from tests.support.skills import make_skill, make_skill_md


def press(page: Page, role: str, name: str) -> None:
    """Move the focus to a link or button, and press Enter."""
    control = page.get_by_role(role, name=name, exact=True).first  # type: ignore[arg-type]
    control.focus()
    expect(control).to_be_focused()
    page.keyboard.press("Enter")


@pytest.fixture
def skill(hall: ServeProcess) -> str:
    data = make_skill_md("read-aloud", "Reads text aloud. Use for audio.", "# Reading\n\nSlowly.\n")
    make_skill(hall.user_skills, "read-aloud", data=data)
    return "read-aloud"


def test_skill_is_found_read_and_edited(visitor: BrowserSession, skill: str) -> None:
    page = visitor.open_page("/skills")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    search = page.get_by_role("searchbox", name="Search skills")
    search.focus()
    page.keyboard.type("aloud audio")
    expect(page.get_by_role("status").filter(has_text="1 skill")).to_be_visible()
    table = page.get_by_role("table", name="Skills")
    expect(table.get_by_role("columnheader", name="Tokens")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2)
    press(page, "link", skill)
    expect(page.get_by_role("heading", name=skill, level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="Reading")).to_be_visible()
    seen = page.get_by_role("region", name="What agents see")
    expect(seen).to_contain_text("Reads text aloud.")
    press(page, "link", "Edit")
    page.get_by_role("textbox", name="Description").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("Reads all text aloud. Use for audio.")
    press(page, "button", "Save")
    expect(page.get_by_role("status").first).to_contain_text("Saved")


def test_archive_is_reviewed_and_imported(visitor: BrowserSession) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("spoken", "heard"):
            file.writestr(f"{name}/SKILL.md", make_skill_md(name, f"Is {name}. Use for radio."))
    page = visitor.open_page("/skills/import")
    page.get_by_label("Choose a file").set_input_files(
        {"name": "audio.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    )
    press(page, "button", "Continue")
    expect(page.get_by_role("heading", name="Review import", level=1)).to_be_visible()
    heard = page.get_by_role("checkbox", name="heard")
    heard.focus()
    page.keyboard.press("Space")
    expect(heard).not_to_be_checked()
    press(page, "button", "Import selected")
    expect(page.get_by_role("status").first).to_contain_text("spoken")


def test_session_is_built_and_its_blocks_are_moved(visitor: BrowserSession) -> None:
    page = visitor.open_page("/sessions")
    page.get_by_role("textbox", name="Name").first.focus()
    page.keyboard.type("Audio")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Audio", level=1)).to_be_visible()
    press(page, "link", "Add a block to Working")
    page.get_by_role("textbox", name="Text (Markdown)").focus()
    page.keyboard.type("Speak slowly.")
    press(page, "button", "Add to board")
    block = page.get_by_role("link", name="Speak slowly.")
    block.focus()
    page.keyboard.press("Alt+ArrowLeft")
    expect(page.locator("#live-region")).to_contain_text("Stable")
