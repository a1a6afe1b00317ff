"""The list of skills in a browser: selection, bulk actions, keyboard and the peek panel."""

import csv
import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browsers import BrowserSession, ServeProcess
from tests.support.skills import make_skill, make_skill_md


def select(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()


def find_preview(page: Page, name: str) -> Locator:
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
    return row.get_by_role("link", name="Preview")


def test_selected_skills_are_deleted_in_one_undoable_step(
    either: BrowserSession, hall: ServeProcess, request: pytest.FixtureRequest
) -> None:
    prefix = "plain" if "without" in request.node.name else "bulk"
    names = [f"{prefix}-{number}" for number in range(2)]
    for name in names:
        make_skill(hall.user_skills, name)
    page = either.open_page(f"/skills?q={prefix}")
    select(page, *names)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Delete 2 skills?")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text(", ".join(names))
    assert not any((hall.user_skills / name).exists() for name in names)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("Undone")
    assert all((hall.user_skills / name / "SKILL.md").exists() for name in names)


def test_system_skills_are_left_out_of_a_deletion(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills?source=system")
    select(page, "shipped")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("read-only")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def test_selected_skills_are_downloaded_as_one_archive(
    visitor: BrowserSession, tmp_path: Path
) -> None:
    page = visitor.open_page("/skills")
    select(page, "pdf-tools", "risky")
    expect(page.get_by_text("2 selected")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    names = zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())).namelist()
    assert {"pdf-tools/scripts/merge.py", "risky/SKILL.md"} <= {*names}


def test_all_skills_of_a_page_are_selected_at_once(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills?source=system")
    expect(page.get_by_role("button", name="Download")).to_be_hidden()
    page.get_by_role("checkbox", name="Select all").check()
    expect(page.get_by_role("checkbox", name="Select shipped")).to_be_checked()
    page.get_by_role("checkbox", name="Select all").uncheck()
    expect(page.get_by_role("button", name="Download")).to_be_hidden()


def test_skill_is_previewed_and_selected_by_keyboard(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills?q=pdf-tools")
    page.keyboard.press("j")
    name = page.get_by_role("cell").get_by_role("link", name="pdf-tools", exact=True)
    expect(name).to_be_focused()
    page.keyboard.press("p")
    panel = page.get_by_role("complementary", name="Skill preview")
    expect(panel.get_by_role("heading", name="PDF tools")).to_be_visible()
    expect(name).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select pdf-tools")).to_be_checked()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_preview_returns_the_focus_when_it_is_closed(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills?q=pdf")
    link = find_preview(page, "pdf-tools")
    link.click()
    close = page.get_by_role("button", name="Close preview")
    expect(close).to_be_focused()
    close.click()
    expect(link).to_be_focused()


def test_preview_without_scripts_is_a_page(plain_visitor: BrowserSession) -> None:
    page = plain_visitor.open_page("/skills?q=pdf")
    find_preview(page, "pdf-tools").click()
    expect(page.get_by_role("heading", name="PDF tools")).to_be_visible()
    page.get_by_role("link", name="Open skill").click()
    expect(page).to_have_url(f"{plain_visitor.url}/skill/pdf-tools")


def test_palette_finds_skills_and_actions_by_keyboard(visitor: BrowserSession) -> None:
    page = visitor.open_page("/sources")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    expect(palette.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("import")
    expect(palette.get_by_role("link").first).to_have_text("Import skills")
    palette.get_by_role("searchbox").fill("pdf-tools")
    expect(palette.get_by_role("link").first).to_contain_text("Reads PDF files")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="pdf-tools", level=1)).to_be_visible()


def test_palette_works_without_scripts(plain_visitor: BrowserSession) -> None:
    page = plain_visitor.open_page("/sources")
    page.locator("#open-palette").click()
    page.get_by_role("searchbox").fill("pdf-tools")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("region", name="Skills").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="pdf-tools", level=1)).to_be_visible()


def test_question_mark_shows_the_shortcuts(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_text("Preview the skill")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_palette_and_shortcuts_are_accessible(axe_visitor: BrowserSession) -> None:
    page = axe_visitor.open_page("/palette?q=pdf")
    assert axe_visitor.find_accessibility_problems() == []
    axe_visitor.open_page("/shortcuts")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Go to")).to_be_visible()
    assert axe_visitor.find_accessibility_problems() == []


def test_list_with_selection_and_preview_is_accessible(
    axe_visitor: BrowserSession, hall: ServeProcess
) -> None:
    make_skill(hall.user_skills, "axe-one", data=make_skill_md("axe-one", "A skill for axe."))
    page = axe_visitor.open_page("/skills?q=axe&scripts=no")
    select(page, "axe-one")
    find_preview(page, "axe-one").click()
    expect(page.get_by_role("button", name="Close preview")).to_be_visible()
    assert axe_visitor.find_accessibility_problems() == []
    axe_visitor.open_page("/skill/axe-one/peek")
    assert axe_visitor.find_accessibility_problems() == []
    axe_visitor.open_page("/skills/selected/delete?skill=axe-one&skill=shipped")
    assert axe_visitor.find_accessibility_problems() == []


def test_every_filter_counts_the_skills_that_it_shows(visitor: BrowserSession) -> None:
    for name in ("Source", "Risk", "Findings", "Size", "Accepted by", "Scripts", "Evals"):
        page = visitor.open_page("/skills")
        value = page.get_by_role("region", name=name, exact=True).get_by_role("link").first
        number = value.locator(".count").inner_text()
        value.click()
        expect(page.get_by_role("list", name="Active filters")).to_contain_text(name)
        expect(page.locator(".list-count")).to_have_text(re.compile(f"^{number} skills?$"))


def test_skills_are_filtered_and_exported_by_agent(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills")
    dropped = page.get_by_role("region", name="Agents that drop it")
    number = dropped.get_by_role("link", name="SkillPort").inner_text().split()[-1]
    dropped.get_by_role("link", name="SkillPort").click()
    expect(page.get_by_role("list", name="Active filters")).to_contain_text("SkillPort")
    assert page.get_by_text(f"{number} skill").first.is_visible()
    expect(page.get_by_role("region", name="Agents that load it")).to_contain_text("Codex")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    header, *rows = csv.reader(download.value.path().read_text("utf-8").splitlines())
    assert all("skillport" in row[header.index("dropped")].split() for row in rows)
    assert len(rows) == int(number)
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").click()
    assert json.loads(download.value.path().read_bytes())["total"] == int(number)


def test_view_is_saved_opened_and_deleted(either: BrowserSession) -> None:
    page = either.open_page("/skills?q=pdf&sort=tokens")
    page.locator("summary", has_text="Saved views").click()
    page.get_by_label("Name of this view").fill("By size")
    page.get_by_label("Name of this view").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("View saved: By size")
    either.open_page("/skills")
    page.locator("summary", has_text="Saved views").click()
    page.get_by_role("link", name="By size").click()
    expect(page.get_by_label("Search", exact=False).first).to_have_value("pdf")
    assert page.url.endswith("/skills?q=pdf&sort=tokens")
    page.locator("summary", has_text="Saved views").click()
    page.get_by_role("button", name="Delete By size").click()
    expect(page.get_by_role("status").first).to_contain_text("View deleted: By size")
    expect(page.get_by_role("link", name="By size")).to_have_count(0)
