"""Sign-in at an identity provider, over HTTP as a browser does it."""

import html
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from skillhall._internal.http.credentials import Credentials
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.settings import OidcSettings, Settings
from skillhall._internal.storage.accounts.oidc_provider import OidcProvider
from skillhall._internal.storage.audit.audit_query import AuditFilter, AuditLog
from skillhall.errors import ConfigInvalid
from tests.support.account_server import AccountServer, account_settings, run_account_server
from tests.support.actors import ACTOR
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, make_key, run_provider
from tests.support.servers import HttpResponse, send_request

CALLBACK = "/sign-in/oidc/callback"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with run_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.reset()
    return running


def make_variables(provider: Provider) -> dict[str, str]:
    return {
        "SKILLHALL_OIDC_ISSUER": provider.url,
        "SKILLHALL_OIDC_CLIENT_ID": CLIENT_ID,
        "SKILLHALL_OIDC_CLIENT_SECRET": CLIENT_SECRET,
    }


@pytest.fixture(scope="module")
def hall(running: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    variables = make_variables(running) | {
        "SKILLHALL_OIDC_ROLE_CLAIM": "groups",
        "SKILLHALL_OIDC_ROLES": "devs=author leads=reviewer",
        "SKILLHALL_OIDC_UNKNOWN": "reader",
    }
    settings = account_settings(tmp_path_factory.mktemp("oidc"), **variables)
    with run_account_server(settings) as server:
        yield server


class Browser:
    """Sends cookies and follows redirects, one step at a time."""

    def __init__(self, hall: AccountServer) -> None:
        self.port, self.cookies = hall.server.port, dict[str, str]()

    def get(self, path: str) -> HttpResponse:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = send_request(self.port, "GET", path, None, {**HTML, "Cookie": cookies})
        for text in reply.headers.get_all("Set-Cookie") or []:
            name, _, value = text.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    def visit_provider(self, path: str = "/sign-in/oidc?next=/sources") -> str:
        """Start to sign in, and return the path to which the provider leads back."""
        return self.follow(str(self.get(path).headers["Location"]))

    def follow(self, url: str) -> str:
        """Visit the provider, and return the path to which it leads back."""
        location = urlsplit(url)
        assert location.port is not None
        target = f"{location.path}?{location.query}"
        reply = send_request(location.port, "GET", target, None, {})
        back = urlsplit(str(reply.headers["Location"]))
        return f"{back.path}?{back.query}"

    def sign_in(self) -> HttpResponse:
        return self.get(self.visit_provider())


def names(hall: AccountServer) -> set[str]:
    return {user.name for user in hall.accounts.users.list()}


def test_person_signs_in_and_gets_the_role_of_a_group(
    hall: AccountServer, provider: Provider
) -> None:
    provider.person |= {"name": "Dev One", "groups": ["devs", "leads", 7, "other"]}
    browser = Browser(hall)
    assert b"Sign in with localhost" in browser.get("/sign-in").body
    reply = browser.sign_in()
    assert reply.status == 200
    assert b'http-equiv="refresh" content="0; url=/sources"' in reply.body
    cookies = {text.partition("=")[0]: text for text in reply.headers.get_all("Set-Cookie") or []}
    assert "SameSite=Strict" in cookies["skillhall_session"]
    assert "Max-Age=43200" in cookies["skillhall_session"]
    assert "Max-Age=0" in cookies["skillhall_oidc"]
    account = browser.get("/account")
    assert b"Dev One" in account.body
    assert b"Reviewer" in account.body
    [user] = [user for user in hall.accounts.users.list() if user.subject == provider.person["sub"]]
    assert (user.issuer, user.role, user.password) == (provider.url, "reviewer", "")


def test_person_is_the_same_next_time_and_the_role_follows_the_groups(
    hall: AccountServer, provider: Provider
) -> None:
    provider.person |= {"groups": "leads", "preferred_username": "ann@example.com"}
    Browser(hall).sign_in()
    assert hall.accounts.users.find("ann").role == "reviewer"
    provider.person |= {"groups": [], "preferred_username": "renamed"}
    Browser(hall).sign_in()
    assert hall.accounts.users.find("ann").role == "reader"
    assert "renamed" not in names(hall)


def test_name_or_mail_of_another_user_gives_nothing(
    hall: AccountServer, provider: Provider
) -> None:
    provider.person |= {"preferred_username": "administrator", "email": "ada@example.com"}
    browser = Browser(hall)
    browser.sign_in()
    assert b"administrator-2" in browser.get("/account").body
    assert browser.get("/users").status == 403
    provider.reset()
    provider.person["preferred_username"] = "operator"
    Browser(hall).sign_in()
    assert "operator" not in names(hall)


def test_tokens_of_an_owner_with_that_name_are_not_taken_over(
    hall: AccountServer, provider: Provider
) -> None:
    stored = hall.accounts.tokens.create("build", "build-bot", actor=ACTOR).stored
    provider.person["preferred_username"] = "build-bot"
    Browser(hall).sign_in()
    assert "build-bot" in names(hall)
    [token] = [token for token in hall.accounts.tokens.list() if token.id == stored.id]
    assert token.user is None


def invite(hall: AccountServer, name: str, role: Role = Role.READER) -> str:
    """Add a user and return the code of the link."""
    return hall.accounts.users.add(name, role, Actor("operator")).code


def follow_link(browser: Browser, code: str) -> str:
    """Choose the provider on the page of a link, and return the path it leads back to."""
    headers = {
        **HTML,
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{browser.port}",
    }
    reply = send_request(browser.port, "POST", "/sign-in/oidc", f"code={code}".encode(), headers)
    assert reply.status == 200, reply.body
    found = re.search(rb'content="0; url=([^"]+)"', reply.body)
    assert found is not None
    for text in reply.headers.get_all("Set-Cookie") or []:
        name, _, value = text.partition(";")[0].partition("=")
        browser.cookies[name] = value
        assert "SameSite=Lax" in text
    return browser.follow(html.unescape(found[1].decode()))


def test_link_connects_the_user_with_the_person_of_the_provider(
    hall: AccountServer, provider: Provider
) -> None:
    provider.person |= {"preferred_username": "someone", "groups": ["leads"]}
    code = invite(hall, "invited")
    browser = Browser(hall)
    reply = browser.get(follow_link(browser, code))
    assert reply.status == 200
    assert b"invited" in browser.get("/account").body
    user = hall.accounts.users.find("invited")
    assert (user.issuer, user.subject) == (provider.url, provider.person["sub"])
    assert user.role == "reviewer"  # the provider decides
    assert "someone" not in names(hall)
    # From now on, without the link.
    again = Browser(hall)
    again.sign_in()
    assert b"invited" in again.get("/account").body
    assert hall.database.audit is not None
    rows = AuditLog(hall.database.database).newest(AuditFilter(subject="invited"), limit=9)
    assert [row["action"] for row in rows if row["actor"] == "invited"][-1] == "user.identity"


def test_link_connects_only_once_and_only_a_new_person(
    hall: AccountServer, provider: Provider
) -> None:
    code = invite(hall, "once")
    first, second = Browser(hall), Browser(hall)
    paths = [follow_link(browser, code) for browser in (first, second)]
    assert first.get(paths[0]).status == 200
    provider.reset()
    late = second.get(paths[1])
    assert late.status in {401, 404}
    assert "skillhall_session" not in second.cookies
    # Someone who has an account does not get a second one.
    other, before = invite(hall, "second"), hall.accounts.users.find("once")
    provider.person["sub"] = before.subject
    browser = Browser(hall)
    refused = browser.get(follow_link(browser, other))
    assert refused.status == 401
    assert b"you already have the account &#39;once&#39;" in refused.body
    assert hall.accounts.users.find("second").issuer == ""


def test_withdrawn_link_connects_no_account(hall: AccountServer, provider: Provider) -> None:
    assert provider.person
    for name, withdraw in (
        ("left", hall.accounts.users.disable),
        ("gone", hall.accounts.users.remove),
        ("later", hall.accounts.users.create_link),
    ):
        browser, code = Browser(hall), invite(hall, name)
        path = follow_link(browser, code)
        withdraw(name, Actor("operator"))
        assert browser.get(path).status == 404
        assert "skillhall_session" not in browser.cookies
    assert all(user.issuer == "" for user in hall.accounts.users.list() if user.name == "left")


def test_wrong_link_does_not_lead_to_the_provider(hall: AccountServer, provider: Provider) -> None:
    seen = len(provider.requests)
    headers = {**HTML, "Content-Type": "application/x-www-form-urlencoded"}
    for code in ("", "wrong"):
        body = f"code={code}".encode()
        reply = send_request(hall.server.port, "POST", "/sign-in/oidc", body, headers)
        assert reply.status == 404
        assert "Set-Cookie" not in reply.headers
    assert len(provider.requests) == seen


def test_known_subject_signs_in_to_the_account_with_the_chosen_role(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = account_settings(tmp_path_factory.mktemp("known"), **make_variables(provider))
    with run_account_server(settings) as hall:
        body = {"name": "dev1", "role": "author", "subject": str(provider.person["sub"])}
        hall.server.headers = hall.bearer(Role.ADMINISTRATOR)
        added = hall.server.request("POST", "/api/v1/users", body)
        assert added.status == 201
        data = added.json["data"]
        assert (data["link"], data["state"], data["issuer"]) == ("", "invited", provider.url)
        assert hall.server.request("POST", "/api/v1/users", {**body, "name": "b"}).status == 409
        browser = Browser(hall)
        assert browser.sign_in().status == 200
        account = browser.get("/account").body
        assert b"dev1" in account
        assert b"Author" in account
        # The name of someone else gives nothing.
        provider.reset()
        provider.person["preferred_username"] = "dev1"
        assert Browser(hall).sign_in().status == 401


def test_disabled_person_is_refused(hall: AccountServer, provider: Provider) -> None:
    provider.person["preferred_username"] = "leaver"
    Browser(hall).sign_in()
    hall.accounts.users.disable("leaver", Actor("operator"))
    again = Browser(hall).sign_in()
    assert again.status == 401
    assert b"your account is disabled" in again.body


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"wrong": {"nonce": "other"}}, b"belongs to another sign-in"),
        ({"wrong": {"iss": "https://evil.example"}}, b"InvalidIssuerError"),
        ({"wrong": {"aud": "another-client"}}, b"InvalidAudienceError"),
        ({"wrong": {"aud": [CLIENT_ID, "other"], "azp": "other"}}, b"for another client"),
        ({"wrong": {"exp": 1}}, b"ExpiredSignatureError"),
        ({"wrong": {"sub": ""}}, b"has no subject"),
        ({"algorithm": "none"}, b"no acceptable signature"),
        ({"algorithm": "HS256"}, b"no acceptable signature"),
        ({"signing_key": make_key()}, b"InvalidSignatureError"),
        ({"changes_state": True}, b"did not start in this browser"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else str([*value])[2:-2],
)
def test_wrong_answer_is_refused_and_no_account_is_made(
    hall: AccountServer, provider: Provider, change: dict[str, object], reason: bytes
) -> None:
    before = names(hall)
    for name, value in change.items():
        setattr(provider, name, value)
    browser = Browser(hall)
    reply = browser.sign_in()
    assert reply.status == 401
    assert re.search(reason, reply.body)
    assert "skillhall_session" not in browser.cookies
    assert names(hall) == before


def test_code_is_accepted_once_and_only_in_the_browser_that_started(
    hall: AccountServer, provider: Provider
) -> None:
    assert provider.person
    browser = Browser(hall)
    back = browser.visit_provider()
    attempt = browser.cookies["skillhall_oidc"]
    before = names(hall)
    assert Browser(hall).get(back).status == 401  # another browser
    assert names(hall) == before
    assert browser.get(back).status == 200
    assert browser.get(back).status == 401  # the attempt is over
    browser.cookies["skillhall_oidc"] = attempt
    again = browser.get(back)
    assert again.status == 401
    assert b"rejected the sign-in" in again.body


@pytest.mark.parametrize(
    "query", ["", "?state=", "?error=access_denied&state=x", "?code=1", "?code=1&state=x&iss=evil"]
)
def test_callback_without_a_sign_in_is_refused(
    hall: AccountServer, provider: Provider, query: str
) -> None:
    seen = provider.requests.count("/token")
    browser = Browser(hall)
    for cookie in ("", "x", "W10", "bnVsbA"):
        browser.cookies["skillhall_oidc"] = cookie
        assert browser.get(f"{CALLBACK}{query}").status == 401
    assert provider.requests.count("/token") == seen


def test_sign_in_leads_only_to_pages_of_this_server(
    hall: AccountServer, provider: Provider
) -> None:
    assert provider.person
    browser = Browser(hall)
    reply = browser.get(browser.visit_provider("/sign-in/oidc?next=//evil.example"))
    assert b'content="0; url=/"' in reply.body
    assert b"evil" not in reply.body


def test_secrets_are_neither_in_urls_nor_in_pages(hall: AccountServer, provider: Provider) -> None:
    browser = Browser(hall)
    location = str(browser.get("/sign-in/oidc").headers["Location"])
    assert "code_challenge_method=S256" in location
    assert "code_verifier" not in location
    assert CLIENT_SECRET not in location
    provider.algorithm = "none"
    assert CLIENT_SECRET.encode() not in browser.sign_in().body


def test_users_and_open_sign_ins_work_while_the_provider_is_down(
    hall: AccountServer, provider: Provider
) -> None:
    browser = Browser(hall)
    browser.sign_in()
    provider.is_down = True
    assert hall.accounts.provider is not None
    hall.accounts.provider._metadata = None  # noqa: SLF001 - it has expired
    failed = Browser(hall).get("/sign-in/oidc")
    assert failed.status == 502
    assert b"identity provider localhost cannot be used" in failed.body
    assert b'name="password"' in failed.body
    assert browser.get("/account").status == 200
    reader = hall.bearer(Role.READER)
    assert hall.server.request("GET", "/api/v1/skills", headers=reader).status == 200


def test_unknown_people_are_refused_unless_configured_otherwise(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = account_settings(tmp_path_factory.mktemp("strict"), **make_variables(provider))
    with run_account_server(settings) as hall:
        before = names(hall)
        reply = Browser(hall).sign_in()
        assert reply.status == 401
        assert b"you have no account on this server" in reply.body
        assert names(hall) == before


def test_configured_provider_requires_sign_in() -> None:
    server = Settings.read({"SKILLHALL_OIDC_ISSUER": "https://id.example"}).server
    assert Credentials(server).is_required


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (OidcSettings("https://id.example"), "CLIENT_ID"),
        (OidcSettings("ftp://id.example", "c"), "ISSUER"),
        (OidcSettings("nowhere", "c"), "ISSUER"),
        (OidcSettings("https://id.example", "c", roles=("a=boss",)), "ROLES"),
        (OidcSettings("https://id.example", "c", unknown="anyone"), "UNKNOWN"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(settings: OidcSettings, variable: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"SKILLHALL_OIDC_{variable}"):
        OidcProvider.from_settings(settings, ())
