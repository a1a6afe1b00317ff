"""Sign-in, language, theme and first steps in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from skillhall import __version__
from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.servers import TOKEN
from tests.support.skills import make_skill


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("locked")
    make_skill(folder / ".agents/skills", "secret-plan")
    with run_server(folder, SKILLHALL_AUTH_TOKEN=TOKEN) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def stranger(
    request: pytest.FixtureRequest, browser: Browser, locked: ServeProcess
) -> Iterator[BrowserSession]:
    session = BrowserSession.open(browser, locked.url, java_script_enabled=request.param)
    yield session
    session.close()


def test_visitor_signs_in_with_token_and_out(stranger: BrowserSession) -> None:
    page = stranger.open_page("/skill/secret-plan")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Invalid token.")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="secret-plan", level=1)).to_be_visible()
    cookie = next(c for c in stranger.context.cookies() if c["name"] == "skillhall_session")
    assert TOKEN not in cookie["value"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    stranger.open_page("/skills")
    expect(page.get_by_label("Token")).to_be_visible()


def test_visitor_ends_another_sign_in_by_keyboard(
    stranger: BrowserSession, browser: Browser, locked: ServeProcess
) -> None:
    other = BrowserSession.open(browser, locked.url, user_agent="Other Browser")
    for session in (other, stranger):
        page = session.open_page("/sign-in")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").press("Enter")
        expect(page.get_by_role("heading", name="Skills", level=1)).to_be_visible()
    page.get_by_role("link", name="Account").press("Enter")
    row = page.get_by_role("row").filter(has_text="Other Browser")
    row.get_by_role("button", name="Sign out the browser").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Browser signed out.")
    expect(page.get_by_text("(this browser)")).to_have_count(1)
    expect(page.get_by_text("Other Browser")).to_have_count(0)
    expect(other.open_page("/skills").get_by_label("Token")).to_be_visible()
    other.close()


def test_account_page_is_accessible(browser: Browser, locked: ServeProcess) -> None:
    visitor = BrowserSession.open(browser, locked.url, bypass_csp=True, reduced_motion="reduce")
    page = visitor.open_page("/sign-in?next=/account")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    assert visitor.find_accessibility_problems() == []
    visitor.close()


def test_sign_in_page_is_accessible(browser: Browser, locked: ServeProcess) -> None:
    visitor = BrowserSession.open(browser, locked.url, bypass_csp=True, reduced_motion="reduce")
    visitor.open_page("/sign-in")
    assert visitor.find_accessibility_problems() == []
    visitor.close()


def test_chosen_language_is_remembered(plain_visitor: BrowserSession) -> None:
    page = plain_visitor.open_page("/skills/add")
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="添加技能")).to_be_visible()
    plain_visitor.open_page("/sources")
    expect(page.locator("html")).to_have_attribute("lang", "zh")


def test_chinese_browser_gets_chinese_pages(browser: Browser, hall: ServeProcess) -> None:
    visitor = BrowserSession.open(
        browser, hall.url, locale="zh-CN", bypass_csp=True, reduced_motion="reduce"
    )
    page = visitor.open_page("/skills")
    expect(page.get_by_role("heading", name="技能", level=1)).to_be_visible()
    assert visitor.find_accessibility_problems() == []
    visitor.close()


def test_chosen_theme_is_remembered(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_sources_are_refreshed(visitor: BrowserSession) -> None:
    page = visitor.open_page("/sources")
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("status").first).to_contain_text("Up to date")


def test_empty_server_explains_how_to_add_skills(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with run_server(tmp_path_factory.mktemp("empty")) as server:
        visitor = BrowserSession.open(browser, server.url, bypass_csp=True, reduced_motion="reduce")
        page = visitor.open_page("/")
        expect(page.get_by_role("heading", name="No skills yet")).to_be_visible()
        assert visitor.find_accessibility_problems() == []
        connect = page.get_by_role("region", name="Connect an agent")
        expect(connect).to_contain_text(f"claude mcp add --transport http skills {server.url}/mcp")
        page.get_by_role("link", name="Write one").click()
        expect(page.get_by_role("heading", name="Add a skill")).to_be_visible()
        page.goto(server.url)
        page.get_by_role("button", name="Add three sample skills").click()
        expect(page.get_by_role("link", name="meeting-notes")).to_be_visible()
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
        visitor.close()


def test_footer_has_help_version_and_health(either: BrowserSession) -> None:
    page = either.open_page("/skills")
    footer = page.get_by_role("contentinfo")
    expect(footer).to_contain_text(f"Skillhall {__version__}")
    expect(footer.get_by_role("link", name="Health")).to_have_attribute("href", "/readyz")
    footer.get_by_role("link", name="Help").click()
    expect(page.get_by_role("heading", name="Connect an agent")).to_be_visible()


def test_unknown_pages_offer_a_way_on(either: BrowserSession) -> None:
    page = either.open_page("/skill/no-such-skill")
    expect(page.get_by_role("main")).to_contain_text("404")
    page.get_by_role("searchbox").fill("pdf")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("link", name="pdf-tools")).to_be_visible()
    either.open_page("/no/such/page")
    expect(page.get_by_role("main")).to_contain_text("This page doesn't exist.")
    page.get_by_role("main").get_by_role("link", name="Help").click()
    expect(page.get_by_role("heading", name="Help", level=1)).to_be_visible()


def test_skipped_entries_are_listed_and_shadowed_skill_is_deleted(
    browser: Browser, tmp_path: Path
) -> None:
    make_skill(tmp_path / ".agents/sys.skills", "pdf")
    make_skill(tmp_path / ".agents/skills", "pdf")
    make_skill(tmp_path / "mine", "good")
    (tmp_path / "mine/plain.md").write_bytes(b"Only text.\n")
    with run_server(tmp_path, SKILLHALL_PROMPTS_REPO=str(tmp_path / "mine")) as server:
        visitor = BrowserSession.open(browser, server.url, bypass_csp=True, reduced_motion="reduce")
        page = visitor.open_page("/sources")
        assert visitor.find_accessibility_problems() == []
        page.get_by_role("link", name="1 entry skipped").click()
        expect(page.get_by_role("region", name="mine")).to_contain_text("plain.md")
        assert visitor.find_accessibility_problems() == []
        visitor.open_page("/skill/pdf")
        page.get_by_role("link", name="Delete the user skill").click()
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("status").first).to_contain_text("pdf")
        visitor.close()
    assert not (tmp_path / ".agents/skills/pdf").exists()
    assert (tmp_path / ".agents/sys.skills/pdf").exists()


def test_settings_of_the_server_are_changed_on_its_page(either: BrowserSession) -> None:
    page = either.open_page("/status")
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Stable").fill("9,000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The settings were saved.")
    expect(page.get_by_text("Changed by")).to_contain_text("operator")
    either.open_page("/sessions")
    page.get_by_label("Name", exact=True).fill("With a budget")
    page.get_by_role("button", name="Create session").click()
    expect(page.get_by_text("0 of 9,000 tokens")).to_be_visible()
    either.open_page("/status/settings")
    page.get_by_label("Stable").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed by")).to_have_count(0)


def test_audit_log_shows_a_change_and_filters_it_by_keyboard(
    browser: Browser, hall: ServeProcess
) -> None:
    visitor = BrowserSession.open(browser, hall.url, bypass_csp=True, reduced_motion="reduce")
    page = visitor.open_page("/sessions")
    page.request.post(f"{visitor.url}/api/v1/sessions", data={"name": "recorded"})
    page.get_by_role("link", name="Audit log").press("Enter")
    expect(page.get_by_role("cell", name="session.create").first).to_be_visible()
    page.get_by_label("Action").fill("token")
    page.get_by_label("Action").press("Enter")
    expect(page.get_by_text("No rows.")).to_be_visible()
    visitor.open_page("/audit")
    assert visitor.find_accessibility_problems() == []
    visitor.close()
    foreign = BrowserSession.open(browser, hall.url, locale="zh-CN")
    page = foreign.open_page("/audit")
    expect(page.get_by_role("heading", level=1)).to_have_text("审计日志")
    expect(page.get_by_role("cell", name="session.create").first).to_be_visible()
    foreign.close()
