"""What a visitor chooses, and how a visitor is let in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.servers import TOKEN
from tests.support.skills import make_skill


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("locked")
    make_skill(folder / ".agents/skills", "secret-plan")
    with run_server(folder, SKILLHALL_AUTH_TOKEN=TOKEN) as one:
        yield one


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def stranger(
    request: pytest.FixtureRequest, browser: Browser, locked: ServeProcess
) -> Iterator[BrowserSession]:
    one = BrowserSession.open(browser, locked.url, java_script_enabled=request.param)
    yield one
    one.close()


def test_a_person_signs_in_with_the_token_and_out_again(stranger: BrowserSession) -> None:
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
    stranger.open_page("/skills")
    expect(page.get_by_label("Token")).to_be_visible()


def test_the_page_that_takes_the_token_keeps_nobody_out(
    browser: Browser, locked: ServeProcess
) -> None:
    one = BrowserSession.open(browser, locked.url, bypass_csp=True, reduced_motion="reduce")
    one.open_page("/sign-in")
    assert one.find_accessibility_problems() == []
    one.close()


def test_a_language_is_chosen_and_kept(plain_visitor: BrowserSession) -> None:
    page = plain_visitor.open_page("/skills/add")
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="添加技能")).to_be_visible()
    plain_visitor.open_page("/sources")
    expect(page.locator("html")).to_have_attribute("lang", "zh")


def test_a_browser_that_asks_for_chinese_gets_it(browser: Browser, hall: ServeProcess) -> None:
    one = BrowserSession.open(
        browser, hall.url, locale="zh-CN", bypass_csp=True, reduced_motion="reduce"
    )
    page = one.open_page("/skills")
    expect(page.get_by_role("heading", name="技能", level=1)).to_be_visible()
    assert one.find_accessibility_problems() == []
    one.close()


def test_colours_are_chosen_and_kept(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_sources_can_be_refreshed(visitor: BrowserSession) -> None:
    page = visitor.open_page("/sources")
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("status").first).to_contain_text("Up to date")


def test_an_empty_hall_teaches_how_to_fill_it(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with run_server(tmp_path_factory.mktemp("empty")) as hall:
        one = BrowserSession.open(browser, hall.url, bypass_csp=True, reduced_motion="reduce")
        page = one.open_page("/")
        expect(page.get_by_role("heading", name="No skills yet")).to_be_visible()
        assert one.find_accessibility_problems() == []
        page.get_by_role("link", name="Write one").click()
        expect(page.get_by_role("heading", name="Add a skill")).to_be_visible()
        one.close()


def test_a_person_finds_out_what_is_skipped_and_deletes_the_shadowed_skill(
    browser: Browser, tmp_path: Path
) -> None:
    make_skill(tmp_path / ".agents/sys.skills", "pdf")
    make_skill(tmp_path / ".agents/skills", "pdf")
    make_skill(tmp_path / "mine", "good")
    (tmp_path / "mine/plain.md").write_bytes(b"Only text.\n")
    with run_server(tmp_path, SKILLHALL_PROMPTS_REPO=str(tmp_path / "mine")) as hall:
        one = BrowserSession.open(browser, hall.url, bypass_csp=True, reduced_motion="reduce")
        page = one.open_page("/sources")
        assert one.find_accessibility_problems() == []
        page.get_by_role("link", name="1 entry skipped").click()
        expect(page.get_by_role("region", name="mine")).to_contain_text("plain.md")
        assert one.find_accessibility_problems() == []
        one.open_page("/skill/pdf")
        page.get_by_role("link", name="Delete the user skill").click()
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("status").first).to_contain_text("pdf")
        one.close()
    assert not (tmp_path / ".agents/skills/pdf").exists()
    assert (tmp_path / ".agents/sys.skills/pdf").exists()
