"""Users in a browser: an administrator invites people, who sign in and manage their tokens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsers import (
    BrowserSession,
    ServeProcess,
    press_by_tab,
    reach_by_tab,
    run_server,
)
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, run_provider
from tests.support.servers import TOKEN
from tests.support.skills import make_skill

PASSWORD = "purple ladder winter"  # noqa: S105 - of tests alone


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("users")
    make_skill(folder / ".agents/skills", "plan")
    with run_server(folder, SKILLHALL_AUTH_TOKEN=TOKEN) as running:
        yield running


def sign_in_as_operator(session: BrowserSession) -> Page:
    page = session.open_page("/sign-in?next=/users")
    if page.get_by_text("Sign in with an access token").count():
        page.get_by_text("Sign in with an access token").click()
    page.get_by_label("Access token", exact=True).fill(TOKEN)
    page.get_by_label("Access token", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Users", level=1)).to_be_visible()
    return page


def invite(page: Page, name: str, role: str) -> str:
    """Add a user by keyboard and return the link."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Role", exact=True).select_option(role)
    page.get_by_role("button", name="Add user").press("Enter")
    expect(page.get_by_role("heading", name=f"Link for {name}")).to_be_visible()
    return page.locator("#join-link").inner_text()


def join(session: BrowserSession, link: str) -> Page:
    page = session.open_page(link.removeprefix(session.url))
    if not page.get_by_label("Code").is_hidden():  # without scripts
        page.get_by_label("Code").fill(link.partition("#")[2])
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Save and sign in").press("Enter")
    return page


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_invited_person_sets_a_password_and_signs_in(
    browser: Browser, server: ServeProcess, scripts: bool
) -> None:
    admin, person = (
        BrowserSession.open(browser, server.url, java_script_enabled=scripts) for _ in range(2)
    )
    name = f"dev{int(scripts)}"
    link = invite(sign_in_as_operator(admin), name, "author")
    page = join(person, link)
    expect(page.get_by_role("status").first).to_contain_text(name)
    expect(page.get_by_role("link", name="Add skill")).to_be_visible()
    expect(page.get_by_role("link", name="Users")).to_have_count(0)
    assert "#" not in page.url
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("wrong")
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password.")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_role("heading", name="Skills", level=1)).to_be_visible()
    for session in (admin, person):
        session.close()


def test_person_creates_and_revokes_a_token_and_changes_the_password(
    browser: Browser, server: ServeProcess
) -> None:
    admin, person = (BrowserSession.open(browser, server.url) for _ in range(2))
    page = join(person, invite(sign_in_as_operator(admin), "dev3", "author"))
    page.get_by_role("link", name="Account").press("Enter")
    page.get_by_label("Label").fill("ci of dev3")
    page.get_by_label("write", exact=False).check()
    expect(page.get_by_label("admin")).to_have_count(0)
    page.get_by_role("button", name="Create token").press("Enter")
    expect(page.locator("#new-token")).to_contain_text("skh_")
    row = page.get_by_role("row").filter(has_text="ci of dev3")
    expect(row).to_contain_text("read write")
    row.get_by_role("button", name="Revoke the token ci of dev3").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The token was revoked.")
    expect(page.get_by_role("row").filter(has_text="ci of dev3")).to_have_count(0)
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_label("New password").fill("green bottle summer")
    page.get_by_label("Repeat the password").fill("green bottle summer")
    page.get_by_role("button", name="Change password").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Your password was changed.")
    for session in (admin, person):
        session.close()


def test_buttons_that_a_role_may_not_use_are_hidden(browser: Browser, server: ServeProcess) -> None:
    admin, person = (BrowserSession.open(browser, server.url) for _ in range(2))
    admin_page = sign_in_as_operator(admin)
    page = join(person, invite(admin_page, "reader1", "reader"))
    expect(page.get_by_role("heading", name="Skills", level=1)).to_be_visible()
    for path in ("/skills", "/skill/plan", "/sessions", "/templates", "/sources", "/playground"):
        person.open_page(path)
        # The forms left are those for the search, the preferences, the language and signing out.
        forms = page.locator("form[method=post]:not([hidden])")
        actions = forms.evaluate_all("forms => forms.map((form) => form.getAttribute('action'))")
        assert {*actions} <= {"/settings", "/sign-out"}, path
        links = page.locator("a[href$='/edit'], a[href$='/add'], a[href$='/import']")
        expect(links).to_have_count(0)
    admin_page.get_by_role("button", name="Disable reader1").press("Enter")
    expect(admin_page.get_by_role("status").first).to_contain_text("reader1")
    row = admin_page.get_by_role("row").filter(has_text="reader1")
    expect(row).to_contain_text("Disabled")
    person.open_page("/skills")
    expect(page.get_by_label("Password")).to_be_visible()
    for session in (admin, person):
        session.close()


def test_user_is_removed_after_a_confirmation(browser: Browser, server: ServeProcess) -> None:
    admin = BrowserSession.open(browser, server.url)
    page = sign_in_as_operator(admin)
    invite(page, "leaver", "reader")
    admin.open_page("/users")
    page.get_by_role("link", name="Remove leaver").press("Enter")
    expect(page.get_by_role("heading", name="Remove leaver?", level=1)).to_be_visible()
    page.get_by_role("link", name="Cancel").press("Enter")
    expect(page.get_by_role("row").filter(has_text="leaver")).to_have_count(1)
    page.get_by_role("link", name="Remove leaver").press("Enter")
    page.get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Removed: leaver")
    expect(page.get_by_role("row").filter(has_text="leaver")).to_have_count(0)
    admin.close()


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_administrator_revokes_the_token_of_a_user_by_keyboard(
    browser: Browser, server: ServeProcess, language: str
) -> None:
    admin, person = (BrowserSession.open(browser, server.url) for _ in range(2))
    admin_page = sign_in_as_operator(admin)
    name = language.lower()
    page = join(person, invite(admin_page, name, "author"))
    page.get_by_role("link", name="Account").press("Enter")
    page.get_by_label("Label").fill(f"ci of {name}")
    page.get_by_role("button", name="Create token").press("Enter")
    expect(page.locator("#new-token")).to_contain_text("skh_")
    cookies = admin.context.cookies()
    foreign = BrowserSession.open(
        browser, server.url, locale=language, bypass_csp=True, reduced_motion="reduce"
    )
    foreign.context.add_cookies([{**one} for one in cookies])  # type: ignore[typeddict-item]
    tokens = foreign.open_page("/users")
    titles = {"en-US": "Tokens of all users", "zh-CN": "所有用户的令牌"}
    press_by_tab(tokens, "link", titles[language])
    row = tokens.get_by_role("row").filter(has_text=f"ci of {name}")
    expect(row).to_contain_text(name)
    reach_by_tab(tokens, row.get_by_role("button"))
    tokens.keyboard.press("Enter")
    expect(tokens.get_by_role("row").filter(has_text=f"ci of {name}")).to_have_count(0)
    assert foreign.find_accessibility_problems() == []
    for session in (admin, person, foreign):
        session.close()


def test_pages_of_users_are_accessible(browser: Browser, server: ServeProcess) -> None:
    admin, person = (
        BrowserSession.open(browser, server.url, bypass_csp=True, reduced_motion="reduce")
        for _ in range(2)
    )
    link = invite(sign_in_as_operator(admin), "seen", "reviewer")
    assert admin.find_accessibility_problems() == []
    person.open_page(link.removeprefix(server.url))
    assert person.find_accessibility_problems() == []
    expect(join(person, link).get_by_role("status").first).to_contain_text("seen")
    person.open_page("/account")
    assert person.find_accessibility_problems() == []
    foreign = BrowserSession.open(browser, server.url, locale="zh-CN")
    foreign.context.add_cookies([{**one} for one in admin.context.cookies()])  # type: ignore[typeddict-item]
    page = foreign.open_page("/users")
    expect(page.get_by_role("heading", level=1)).to_have_text("用户")
    page.get_by_role("link", name="移除 seen").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("移除 seen？")
    for session in (admin, person, foreign):
        session.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with run_provider() as running:
        running.reset()
        yield running


@pytest.fixture(scope="module")
def connected(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    variables = {
        "SKILLHALL_OIDC_ISSUER": provider.url,
        "SKILLHALL_OIDC_CLIENT_ID": CLIENT_ID,
        "SKILLHALL_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "SKILLHALL_OIDC_UNKNOWN": "author",
        "SKILLHALL_AUTH_TOKEN": TOKEN,
    }
    with run_server(tmp_path_factory.mktemp("connected"), **variables) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_person_of_the_identity_provider_is_in_at_the_first_try(
    browser: Browser, connected: ServeProcess, provider: Provider, scripts: bool
) -> None:
    provider.reset()
    session = BrowserSession.open(browser, connected.url, java_script_enabled=scripts)
    page = session.open_page("/sources")
    page.get_by_role("link", name="Sign in with localhost").press("Enter")
    expect(page.get_by_role("heading", name="Sources", level=1)).to_be_visible()
    page.get_by_role("link", name="Account").click()
    expect(page.get_by_text("Author")).to_be_visible()
    expect(page.get_by_label("Current password")).to_have_count(0)
    foreign = f"foreign request: {provider.url}"
    assert [problem for problem in session.problems if not problem.startswith(foreign)] == []
    session.context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_invited_person_signs_in_at_the_identity_provider(
    browser: Browser, connected: ServeProcess, provider: Provider, scripts: bool
) -> None:
    provider.reset()
    admin, person = (
        BrowserSession.open(browser, connected.url, java_script_enabled=scripts) for _ in range(2)
    )
    name = f"lead{int(scripts)}"
    link = invite(sign_in_as_operator(admin), name, "reviewer")
    page = person.open_page(link.removeprefix(person.url))
    if not page.get_by_label("Code").is_hidden():  # without scripts
        page.get_by_label("Code").fill(link.partition("#")[2])
    page.get_by_role("button", name="Sign in with localhost").press("Enter")
    expect(page.get_by_role("heading", name="Skills", level=1)).to_be_visible()
    page.get_by_role("banner").get_by_role("link", name="Account").press("Enter")
    expect(page.get_by_text(f"{name} · Reviewer")).to_be_visible()
    for session in (admin, person):
        session.context.close()


def test_failed_sign_in_at_the_identity_provider_is_explained(
    browser: Browser, connected: ServeProcess, provider: Provider
) -> None:
    provider.reset()
    provider.changes_state = True
    session = BrowserSession.open(browser, connected.url)
    page = session.open_page("/sign-in")
    page.get_by_role("link", name="Sign in with localhost").click()
    expect(page.get_by_role("alert")).to_contain_text("did not start in this browser")
    session.context.close()
