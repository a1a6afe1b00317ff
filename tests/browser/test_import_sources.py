"""Imports and repositories in a browser: dropped folders, URLs and git."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.archives import zip_of
from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.git_server import GitRepo, GitServer, git_repo, run_git_server
from tests.support.http_server import HttpServer, respond, run_http_server
from tests.support.skills import make_skill, make_skill_md

# Scripts cannot create a drop with a folder; this event has the same interface.
_DROP = """
folder => {
  const file = (name, text) => ({
    isFile: true, isDirectory: false, name, file: done => done(new File([text], name)),
  });
  const directory = (name, entries) => ({
    isFile: false, isDirectory: true, name, createReader: () => {
      let batches = [entries];
      return { readEntries: done => done(batches.pop() ?? []) };
    },
  });
  const inner = directory("references", [file("more.md", "# More")]);
  const entry = directory(folder.name, [file("SKILL.md", folder.text), inner]);
  const drop = new Event("drop", { bubbles: true, cancelable: true });
  drop.dataTransfer = { items: [{ webkitGetAsEntry: () => entry }], files: [] };
  document.querySelector("[data-drop]").dispatchEvent(drop);
}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[HttpServer]:
    with run_http_server() as server:
        for name in ("from-web", "typed"):
            data = zip_of({f"{name}/SKILL.md": make_skill_md(name)})
            server.routes[f"/{name}.zip"] = respond(body=data)
        yield server


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with run_git_server(tmp_path_factory.mktemp("hub")) as server:
        yield server


@pytest.fixture(scope="module")
def repo(hub: GitServer) -> GitRepo:
    files = {"skills/from-git/SKILL.md": make_skill_md("from-git")}
    return git_repo(hub.root / "team.git", files)


@pytest.fixture(scope="module")
def open_hall(
    tmp_path_factory: pytest.TempPathFactory,
    hub: GitServer,
    repo: GitRepo,
) -> Iterator[ServeProcess]:
    """Server that may fetch from this machine and serves a repository."""
    with run_server(
        tmp_path_factory.mktemp("open"),
        SKILLHALL_ALLOW_NETWORKS="127.0.0.0/8",
        SKILLHALL_PROMPTS_REPO=hub.url("team.git"),
        SKILLHALL_PROMPTS_BRANCH="main",
    ) as server:
        yield server


@pytest.fixture
def guest(browser: Browser, open_hall: ServeProcess) -> Iterator[BrowserSession]:
    session = BrowserSession.open(browser, open_hall.url)
    yield session
    session.close()


def import_selected(page: Page, name: str) -> None:
    expect(page.get_by_role("checkbox", name=name)).to_be_checked()
    page.get_by_role("button", name="Import selected").click()
    expect(page.get_by_role("status").first).to_contain_text(f"Imported {name}")


def fetch(page: Page, url: str) -> None:
    page.get_by_label("Repository or URL").fill(url)
    page.get_by_role("button", name="Fetch").click()


def test_dropped_folder_is_imported_with_all_files(
    guest: BrowserSession, open_hall: ServeProcess
) -> None:
    page = guest.open_page("/skills/import")
    text = make_skill_md("dropped-folder").decode()
    page.evaluate(_DROP, {"name": "dropped-folder", "text": text})
    import_selected(page, "dropped-folder")
    assert (open_hall.user_skills / "dropped-folder/references/more.md").read_bytes() == b"# More"


def test_skill_is_imported_from_url(
    guest: BrowserSession, open_hall: ServeProcess, site: HttpServer
) -> None:
    fetch(guest.open_page("/skills/import"), f"http://127.0.0.1:{site.port}/from-web.zip")
    import_selected(guest.page, "from-web")
    assert (open_hall.user_skills / "from-web/SKILL.md").exists()


def test_skill_is_imported_from_repository(
    guest: BrowserSession, open_hall: ServeProcess, hub: GitServer, repo: GitRepo
) -> None:
    other = git_repo(hub.root / "other.git", {"mine/SKILL.md": make_skill_md("mine")})
    assert other.folder.exists()
    fetch(guest.open_page("/skills/import"), hub.url("other.git"))
    import_selected(guest.page, "mine")
    assert (open_hall.user_skills / "mine/SKILL.md").exists()


def test_sources_page_shows_commit_and_stale_state(
    guest: BrowserSession, hub: GitServer, repo: GitRepo
) -> None:
    page = guest.open_page("/sources")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="team.git"))
    expect(row).to_contain_text(repo.git("rev-parse", "main")[:12])
    added = {f"skills/{name}/SKILL.md": make_skill_md(name) for name in ("from-git", "later")}
    commit = repo.commit(added, parent=repo.git("rev-parse", "main"))
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("status").first).to_contain_text("Up to date")
    expect(row).to_contain_text(commit[:12])
    hub.status = 503
    try:
        page.get_by_role("button", name="Refresh").click()
        expect(page.get_by_role("alert")).to_contain_text("Source unavailable")
        assert "502" in guest.problems.pop()  # the browser logs the failed request
        guest.open_page("/sources")
        expect(page.get_by_text("Serving a cached version. Reason:")).to_be_visible()
        expect(row).to_contain_text(commit[:12])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        hub.status = 0
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("status").first).to_contain_text("Up to date")
    expect(page.get_by_text("Serving a cached version. Reason:")).to_have_count(0)


def test_repository_is_added_and_removed_by_keyboard(
    browser: Browser, open_hall: ServeProcess, hub: GitServer
) -> None:
    git_repo(hub.root / "added.git", {"skills/joined/SKILL.md": make_skill_md("joined")})
    visitor = BrowserSession.open(browser, open_hall.url, bypass_csp=True, reduced_motion="reduce")
    page = visitor.open_page("/sources")
    press_tab_and_type(page, "Repository", hub.url("added.git"))
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Name the folder")
    assert visitor.find_accessibility_problems() == []
    expect(page.get_by_label("Repository")).to_have_value(hub.url("added.git"))
    press_tab_and_type(page, "Subfolder", "skills")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Added")
    assert visitor.find_accessibility_problems() == []
    visitor.open_page("/skills")
    expect(page.get_by_role("link", name="joined")).to_be_visible()
    expect(page.locator("#filters")).to_contain_text("added.git")  # hidden on narrow screens
    visitor.open_page("/sources")
    removal = f"Remove {hub.url('added.git')}"
    for button, text in ((removal, "Removed"), ("Undo", "Added"), (removal, "Removed")):
        press_until(page, button)
        expect(page.get_by_role("status").first).to_contain_text(text)
    visitor.close()


def test_repository_is_added_and_removed_without_scripts(
    browser: Browser, open_hall: ServeProcess, hub: GitServer
) -> None:
    git_repo(hub.root / "plain.git", {"plain/SKILL.md": make_skill_md("plain")})
    visitor = BrowserSession.open(browser, open_hall.url, java_script_enabled=False)
    page = visitor.open_page("/sources")
    page.get_by_label("Repository").fill(hub.url("plain.git"))
    page.get_by_role("button", name="Add repository").click()
    expect(page.get_by_role("status").first).to_contain_text("Added")
    page.get_by_role("button", name=f"Remove {hub.url('plain.git')}").click()
    expect(page.get_by_role("status").first).to_contain_text("Removed")
    visitor.close()


def press_until(page: Page, name: str, role: str = "button") -> None:
    """Focus a control with the Tab key and activate it with Enter."""
    control = page.get_by_role(role, name=name, exact=True).first  # type: ignore[arg-type]  # any role
    for _ in range(80):
        page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            page.keyboard.press("Enter")
            return
    raise AssertionError(name)


def test_skill_is_added_edited_and_deleted_by_keyboard(
    guest: BrowserSession, open_hall: ServeProcess
) -> None:
    page = guest.open_page("/skills")
    press_until(page, "Add skill", "link")
    expect(page.get_by_role("heading", name="Add a skill")).to_be_visible()
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("by-hand")
    press_tab_and_type(page, "Description", "Typed.")
    press_until(page, "Add skill")
    expect(page.get_by_role("status").first).to_contain_text("Added")
    press_until(page, "Edit", "link")
    expect(page.get_by_role("button", name="Save")).to_be_visible()
    press_tab_and_type(page, "Instructions", "Do it well.")
    press_until(page, "Save")
    expect(page.get_by_role("status").first).to_contain_text("Saved")
    assert b"Do it well." in (open_hall.user_skills / "by-hand/SKILL.md").read_bytes()
    press_until(page, "Delete", "link")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(dialog.get_by_role("button", name="Delete")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    assert not (open_hall.user_skills / "by-hand").exists()


def press_tab_and_type(page: Page, label: str, text: str) -> None:
    control = page.get_by_label(label)
    for _ in range(80):
        page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            page.keyboard.type(text)
            return
    raise AssertionError(label)


def test_skill_is_imported_by_keyboard(
    guest: BrowserSession, open_hall: ServeProcess, site: HttpServer
) -> None:
    page = guest.open_page("/skills/import")
    press_tab_and_type(page, "Repository or URL", f"http://127.0.0.1:{site.port}/typed.zip")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Review import")).to_be_visible()
    press_until(page, "Import selected")
    expect(page.get_by_role("status").first).to_contain_text("typed")
    assert (open_hall.user_skills / "typed").exists()


def test_delete_page_says_when_undo_is_impossible(
    guest: BrowserSession, open_hall: ServeProcess, tmp_path: Path
) -> None:
    folder = make_skill(open_hall.user_skills, "with-link")
    (folder / "link.md").symlink_to(folder / "SKILL.md")
    page = guest.open_page("/skill/with-link/delete")
    expect(page.get_by_text("This can't be undone")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").first).to_contain_text("Deleted")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert not folder.exists()


def test_sort_by_tokens_lists_longest_skills_first(
    guest: BrowserSession, open_hall: ServeProcess
) -> None:
    for name, words in (("brief", 10), ("vast", 5000)):
        text = make_skill_md(name, body="word " * words)
        make_skill(open_hall.user_skills, name, data=text)
    page = guest.open_page("/skills")
    page.get_by_role("columnheader", name="Tokens").get_by_role("link").click()
    names = page.locator(".item-summary .name")
    expect(names.first).to_have_text("vast")
    assert names.all_inner_texts().index("brief") > 0
