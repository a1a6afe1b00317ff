"""Pages with realistic skills at three widths: accessible, readable, and without overflow."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsers import WIDTHS, BrowserSession
from tests.support.demo_site import DemoSite, record_usage, run_demo, sign_in

# Pages with wide tables, long code and images.
_MARKDOWN_PAGES = ("/skill/payments-api", "/skill/style-handbook")
# Pages that scripts complete.
_MOVING_PAGES = (
    "/skills?q=pdf",
    "/skill/payments-api",
    "/skill/payments-api/edit-file?path=SKILL.md",
    "/skills/add",
    "/sessions",
)
_OBSERVE_SHIFTS = """window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoSite]:
    folder = tmp_path_factory.mktemp("demo")
    record_usage(folder / "data")
    with run_demo(folder) as site:
        yield site


@pytest.fixture
def admin(browser: Browser, demo: DemoSite) -> Iterator[BrowserSession]:
    """Administrator whose pages axe-core can check."""
    session = BrowserSession.open(browser, demo.server.url, bypass_csp=True)
    sign_in(session.page, session.url)
    yield session
    session.close()


def test_wide_tables_and_long_code_are_accessible(admin: BrowserSession, demo: DemoSite) -> None:
    paths = [
        "/skill/payments-api",
        "/skill/payments-api/peek",
        "/skill/style-handbook",
        "/skill/payments-api/edit-file?path=SKILL.md",
        f"{demo.board.path}/blocks/{demo.guide}/edit",
        f"{demo.board.path}/read",
        "/account",
        "/skill/dev-setup",
    ]
    for path in paths:
        admin.open_page(path)
        # Three views show each width and both themes.
        views = WIDTHS if path in _MARKDOWN_PAGES else WIDTHS[:1] + WIDTHS[3:5]
        assert admin.find_accessibility_problems(views) == [], path


def test_outline_of_a_long_skill_stays_in_view(admin: BrowserSession) -> None:
    page = admin.open_page("/skill/style-handbook")
    outline = page.get_by_role("navigation", name="Outline")
    outline.get_by_role("link", name="Tables", exact=True).click()
    expect(page.get_by_role("heading", name="Tables", exact=True)).to_be_in_viewport()
    expect(outline).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Use it")).to_be_in_viewport()


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_do_not_move_while_they_load(browser: Browser, demo: DemoSite, width: int) -> None:
    visitor = BrowserSession.open(
        browser, demo.server.url, viewport={"width": width, "height": 900}
    )
    visitor.page.add_init_script(_OBSERVE_SHIFTS)
    sign_in(visitor.page, visitor.url)
    for path in _MOVING_PAGES:
        page = visitor.open_page(path)
        if "edit-file" in path:
            expect(page.locator(".cm-content")).to_be_visible()
        assert page.evaluate("window.shifts") < 0.01, path
    visitor.close()


def test_at_least_twelve_skills_are_shown_per_screen(admin: BrowserSession) -> None:
    admin.page.set_viewport_size({"width": 1440, "height": 900})
    urls: list[str] = []
    admin.page.on("request", lambda request: urls.append(request.url))
    page = admin.open_page("/skills")
    expect(page.get_by_role("row").nth(12)).to_be_in_viewport(ratio=1)
    assert [url for url in urls if "codemirror" in url] == []  # loaded only in the editor


def test_status_page_shows_usage_sources_storage_and_queues(admin: BrowserSession) -> None:
    page = admin.open_page("/status")
    for name in ("Loads", "Tokens", "Failures"):
        expect(page.get_by_role("img", name=f"{name}: ")).to_be_visible()
    usage = page.get_by_role("region", name="Skill usage").get_by_role("row", name="csv-report")
    expect(usage.get_by_role("img", name="Loads of csv-report")).to_be_visible()
    sources = page.get_by_role("region", name="Sources").get_by_role("row")
    expect(sources.filter(has_text="OK")).to_have_count(2)
    expect(page.get_by_role("definition").filter(has_text="Database, history")).to_be_visible()
    queues = page.get_by_role("region", name="Work in progress").get_by_role("row")
    expect(queues.filter(has_text="The database")).to_contain_text("of")
    expect(page.get_by_role("region", name="Settings").get_by_role("row").first).to_be_visible()
