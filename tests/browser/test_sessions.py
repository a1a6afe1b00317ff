"""Sessions in a browser: list, imports, templates, snapshots, context and export."""

import io
import re
import zipfile

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.archives import zip_of
from tests.support.browsers import BrowserSession, ServeProcess, expect_requests, hold_first
from tests.support.session_boards import SessionBoard
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def board(hall: ServeProcess) -> SessionBoard:
    board = SessionBoard.create(hall.url, "Reading", working=10, total=4000)
    board.add("You review papers.", "system_prompt")
    board.add("A note.\n\nWith more.")
    return board


def titles(page: Page, zone: str = "stable") -> list[str]:
    return page.locator(f"#cards-{zone} h3").all_inner_texts()


def upload(page: Page, name: str, data: bytes) -> None:
    kind = "text/markdown" if name.endswith(".md") else "application/zip"
    field = page.get_by_label("Choose a file")
    field.set_input_files({"name": name, "mimeType": kind, "buffer": data})
    page.get_by_role("button", name="Import", exact=True).click()


def test_session_pages_are_accessible(
    axe_visitor: BrowserSession, board: SessionBoard, hall: ServeProcess
) -> None:
    board.request("POST", "/snapshots", {"name": "Before"})
    empty = SessionBoard.create(hall.url, "Empty")
    [block, *_] = board.request("GET", "/blocks")["blocks"]
    paths = [
        "",
        "?type=note",
        "/context",
        "/saved-states",
        "/settings",
        "/import",
        "/delete",
        "/add",
    ]
    pages = ["/sessions", "/templates", empty.path, f"{empty.path}/context", "/session/none"]
    edit = f"{board.path}/blocks/{block['id']}/edit"
    for path in (*pages, *(board.path + path for path in paths), edit):
        axe_visitor.open_page(path)
        assert axe_visitor.find_accessibility_problems() == [], path
    page = axe_visitor.open_page(board.path)
    page.get_by_role("link", name="A note.").click()
    expect(page.get_by_label("Text (Markdown)")).to_be_focused()
    assert axe_visitor.find_accessibility_problems() == []


def test_session_is_created_renamed_copied_and_deleted(either: BrowserSession) -> None:
    page = either.open_page("/sessions")
    page.get_by_label("Name", exact=True).fill("First try")
    page.get_by_role("button", name="Create session").click()
    expect(page.get_by_role("heading", name="First try")).to_be_visible()
    expect(page.get_by_role("heading", name="This board is empty")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("Name", exact=True).fill("Second try")
    page.get_by_label("Stable").fill("1,000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("0 of 1,000 tokens")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Copy session").click()
    expect(page.get_by_role("heading", name="Second try (copy)")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Delete session").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted Second try (copy)")
    expect(page.get_by_role("link", name="Second try (copy)", exact=True)).to_have_count(0)


def test_settings_conflict_shows_both_versions(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(f"{board.path}/settings")
    page.get_by_label("Name", exact=True).fill("Mine")
    board.request("PATCH", "", {"name": "Theirs"}, **{"If-Match": '"1"'})
    page.get_by_role("button", name="Save").click()
    region = page.get_by_role("region", name="These settings were changed by someone else")
    expect(region).to_contain_text("Theirs")
    expect(region).to_contain_text("Mine")
    page.get_by_role("button", name="Save my version").click()
    expect(page.get_by_role("heading", name="Mine")).to_be_visible()


def test_invalid_budget_is_shown_in_the_form(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(f"{board.path}/settings")
    page.get_by_label("Stable").fill("plenty")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("'plenty' is not a number of tokens")
    expect(page.get_by_label("Stable")).to_have_value("plenty")


def test_single_skill_md_is_imported_without_review(
    either: BrowserSession, board: SessionBoard
) -> None:
    page = either.open_page(f"{board.path}/import")
    upload(page, "SKILL.md", make_skill_md("csv-tools", "Reads CSV.", "Read it.\n"))
    expect(page.get_by_role("status").first).to_contain_text("Imported csv-tools")
    card = page.locator(".block").filter(has_text="csv-tools")
    expect(card).to_contain_text("Reads CSV.")
    expect(card).to_contain_text("uploaded: SKILL.md")


def test_import_of_existing_skill_asks_to_replace_or_keep_both(
    either: BrowserSession, board: SessionBoard
) -> None:
    page = either.open_page(f"{board.path}/import")
    upload(page, "SKILL.md", make_skill_md("twice", "Old.", "Old body.\n"))
    expect(page.get_by_role("status").first).to_contain_text("Imported")
    either.open_page(f"{board.path}/import")
    upload(page, "SKILL.md", make_skill_md("twice", "New.", "New body.\n"))
    expect(page.get_by_text("Already added")).to_be_visible()
    page.get_by_role("radio", name="Keep both").check()
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator("#cards-stable h3")).to_have_text(["twice", "twice"])
    either.open_page(f"{board.path}/import")
    upload(page, "SKILL.md", make_skill_md("twice", "Newest.", "Newest body.\n"))
    expect(page.get_by_role("radio", name="Replace")).to_be_checked()
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator("#cards-stable h3")).to_have_text(["twice", "twice"])
    assert [text.strip() for text in board.list_texts("STABLE")] == ["Newest body.", "New body."]


def test_skills_of_a_zip_are_selected_in_the_review(
    either: BrowserSession, board: SessionBoard
) -> None:
    archive = zip_of(
        {
            "one/SKILL.md": make_skill_md("one"),
            "two/SKILL.md": make_skill_md("two"),
            "bad/SKILL.md": b"no frontmatter",
        }
    )
    page = either.open_page(f"{board.path}/import")
    upload(page, "some.zip", archive)
    expect(page.get_by_role("checkbox")).to_have_count(3)
    expect(page.get_by_role("checkbox", name="bad")).to_be_disabled()
    expect(page.get_by_text("missing frontmatter")).to_be_visible()
    page.get_by_role("checkbox", name="one").uncheck()
    page.get_by_label("Zone").select_option("PERMANENT")
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator("#cards-permanent h3")).to_have_text(["You review papers.", "two"])
    assert titles(page) == []


def test_skills_of_server_and_folder_are_imported(
    either: BrowserSession, board: SessionBoard, hall: ServeProcess
) -> None:
    make_skill(hall.folder / f"home/{board.id}", "at-home-too")
    page = either.open_page(f"{board.path}/import")
    page.get_by_role("checkbox", name="shipped").check()
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator("#cards-stable h3")).to_have_text(["shipped"])
    either.open_page(f"{board.path}/import")
    page.get_by_label("Folder").fill(f"~/{board.id}")
    page.get_by_role("button", name="Scan").click()
    expect(page.locator("#cards-stable h3")).to_have_text(["shipped", "at-home-too"])


def test_selected_skills_of_the_server_survive_a_search(
    either: BrowserSession, board: SessionBoard
) -> None:
    page = either.open_page(f"{board.path}/import")
    page.get_by_role("checkbox", name="shipped").check()
    page.get_by_role("searchbox").fill("pdf")
    if not either.has_scripts:
        page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("checkbox", name="huge")).to_have_count(0)
    expect(page.get_by_role("checkbox", name="shipped")).to_be_checked()
    page.get_by_role("checkbox", name="pdf-tools").check()
    page.get_by_role("button", name="Import selected").click()
    expect(page.locator("#cards-stable h3")).to_have_text(["shipped", "pdf-tools"])


def test_skill_that_is_selected_during_a_search_stays_selected(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(f"{board.path}/import")
    url, held = re.compile(r"/import\?q="), list[Route]()
    page.route(url, lambda route: held.append(route), times=1)  # noqa: PLW0108 - Playwright sets an attribute
    with page.expect_request(url):
        page.get_by_role("searchbox").fill("pdf")
    page.get_by_role("checkbox", name="shipped").check()
    held[0].continue_()
    expect(page.get_by_role("checkbox", name="huge")).to_have_count(0)
    expect(page.get_by_role("checkbox", name="shipped")).to_be_checked()


def test_slow_search_for_skills_to_import_shows_the_last_text(
    visitor: BrowserSession, board: SessionBoard
) -> None:
    page = visitor.open_page(f"{board.path}/import")
    hold_first(page, re.compile(r"/import\?q="), until=3)
    for number, text in enumerate(("s", "sh", "pdf"), 1):
        page.get_by_role("searchbox").fill(text)
        expect_requests(page, number)
    expect(page.get_by_role("checkbox", name="shipped")).to_have_count(0)
    expect(page.get_by_role("checkbox", name="pdf-tools")).to_be_visible()


def test_rejected_import_is_shown_in_its_form(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(f"{board.path}/import")
    page.get_by_label("Repository or URL").fill("http://127.0.0.1/SKILL.md")
    page.get_by_role("button", name="Fetch").click()
    expect(page.get_by_role("alert")).to_contain_text("Source rejected")
    upload(page, "bad.zip", b"no zip")
    expect(page.get_by_role("alert")).to_contain_text("Archive rejected")


def test_template_is_saved_started_applied_renamed_and_deleted(
    either: BrowserSession, board: SessionBoard, request: pytest.FixtureRequest
) -> None:
    name = f"Review {'plain' if 'without' in request.node.name else 'full'}"
    page = either.open_page(f"{board.path}/saved-states")
    # After the error below, the form asks before its text is lost.
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save template").click()
    expect(page.get_by_role("status").first).to_contain_text(f"Template saved: {name}")
    page.get_by_role("button", name="Save template").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save template").click()
    expect(page.get_by_role("alert")).to_contain_text("Already exists")
    either.open_page("/templates")
    mine = page.get_by_role("region", name=name)
    mine.get_by_role("button", name="Start session").click()
    expect(page.locator("#cards-working h3")).to_have_text(["A note."])
    page.get_by_role("link", name="Templates and snapshots").click()
    page.locator("#applied-template").select_option(label=name)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#cards-working h3")).to_have_text(["A note.", "A note."])
    page.get_by_role("link", name="Templates and snapshots").click()
    page.locator("#applied-template").select_option(label=name)
    page.get_by_role("radio", name="Replace everything").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#cards-working h3")).to_have_text(["A note."])
    page.get_by_role("link", name="Templates and snapshots").click()
    expect(page.get_by_text("Automatic", exact=True)).to_be_visible()
    either.open_page("/templates")
    mine.locator("summary").click()
    mine.get_by_label("Name", exact=True).fill(f"{name} 2")
    mine.get_by_role("button", name="Save").click()
    renamed = page.get_by_role("region", name=f"{name} 2")
    renamed.locator("summary").click()
    renamed.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    expect(renamed).to_have_count(0)


def test_snapshot_is_saved_and_restored(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(f"{board.path}/saved-states")
    page.get_by_label("Snapshot name").fill("Before lunch")
    page.get_by_role("button", name="Save snapshot").click()
    expect(page.get_by_role("status").first).to_contain_text("Snapshot saved")
    board.add("Afternoon")
    page.get_by_role("button", name="Restore Before lunch").click()
    expect(page.get_by_role("alert")).to_contain_text("Changed by someone else")
    page.get_by_role("button", name="Restore Before lunch", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Restored Before lunch")
    expect(page.locator("#cards-working h3")).to_have_text(["A note."])


def test_deleted_block_is_restored_from_the_list(
    plain_visitor: BrowserSession, board: SessionBoard
) -> None:
    [block] = board.request("GET", "/blocks?zone=WORKING")["blocks"]
    board.delete(block["id"])
    page = plain_visitor.open_page(f"{board.path}/saved-states")
    page.get_by_role("button", name="Restore A note.").click()
    expect(page.locator("#cards-working h3")).to_have_text(["A note."])


def test_context_page_shows_compiled_context(visitor: BrowserSession, board: SessionBoard) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.open_page(f"{board.path}/context")
    expected = board.request("GET", "/context")["text"]
    assert page.locator("#context").text_content() == expected
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#live-region")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == expected
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text(encoding="utf-8") == expected


def test_exported_session_can_be_opened_again(either: BrowserSession, board: SessionBoard) -> None:
    page = either.open_page(board.path)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as skill").click()
    data = download.value.path().read_bytes()
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert any(name.endswith("SKILL.md") for name in names)
    either.open_page("/sessions")
    page.get_by_label("Exported session").set_input_files(
        {"name": "reading.zip", "mimeType": "application/zip", "buffer": data}
    )
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("status").first).to_contain_text("Opened Reading")
    expect(page.locator("#cards-working h3")).to_have_text(["A note."])
