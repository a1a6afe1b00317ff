"""Credentials of users: passwords, tokens and sign-ins, limited by the role of the user."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillhall._internal.http.access import actor_of, may
from skillhall._internal.http.credentials import (
    MAX_FAILURES,
    SESSION_COOKIE,
    Credential,
    Credentials,
    read_cookie,
)
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import CREDENTIAL_KEY, HEADERS_KEY
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor
from skillhall._internal.policy.access.roles import ROLES, Action, Role
from skillhall._internal.settings import Secret, ServerSettings
from skillhall._internal.storage import credential_cache
from skillhall._internal.storage.access_tokens import AccessTokens, TokenCache
from skillhall._internal.storage.accounts.user_accounts import UserAccounts, UserCache
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.sign_ins import SignIns
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlSignInTable, SqlTokenTable
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.switchable_database import SwitchableDatabase

SCOPE: dict[str, Any] = {"client": ("192.0.2.1", 1), HEADERS_KEY: {}, "path": "/skills"}
ADMIN = Actor("ada")


class Server(NamedTuple):
    """A server with users, whose caches are refreshed by hand."""

    database: SwitchableDatabase
    accounts: UserAccounts
    access_tokens: AccessTokens
    tokens: TokenCache
    sign_ins: SignIns
    users: UserCache
    credentials: Credentials

    def refresh(self) -> None:
        """Do what servers do after the event of a change."""
        for cache in (self.tokens, self.sign_ins, self.users):
            cache.try_refresh()

    def token(self, text: str) -> Credential | None:
        return self.credentials.authenticate_token(text.encode(), SCOPE)

    def password(self, name: str, password: str) -> Credential | None:
        # The hash is slow, and `test_passwords` is about it.
        return self.credentials.authenticate_password(name, password, compare_plain, SCOPE)

    def sign_in(self, credential: Credential) -> str:
        header = self.credentials.sign_in(credential, SCOPE).partition(b";")[0]
        return read_cookie(header, SESSION_COOKIE)


def compare_plain(password: str, stored: str) -> bool:
    """Compare a password with one that is stored as it is."""
    return bool(stored) and password == stored


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with the author dev1, whose password is "secret"."""
    database = SwitchableDatabase(build_sqlite_url(str(tmp_path / "a.db")), TIMESTAMP)
    recorder = UseRecorder()
    tokens, users = SqlTokenTable(database), SqlUserTable(database)
    with (
        closing(database),
        closing(recorder),
        closing(TokenCache(tokens, recorder)) as token_cache,
        closing(SignIns(SqlSignInTable(database), recorder)) as sign_ins,
        closing(UserCache(users, recorder)) as user_cache,
    ):
        credentials = Credentials(ServerSettings(), token_cache, sign_ins, user_cache)
        accounts = UserAccounts(users)
        user = accounts.add("dev1", Role.AUTHOR, ADMIN).user
        users.change(user, ADMIN, "password", TIMESTAMP, {"password": "secret"})
        server = Server(
            database,
            accounts,
            AccessTokens(tokens),
            token_cache,
            sign_ins,
            user_cache,
            credentials,
        )
        server.refresh()
        yield server


def allowed(credential: Credential) -> set[Action]:
    scope = {**SCOPE, CREDENTIAL_KEY: credential}
    return {action for action in Action if may(scope, action)}


def test_user_may_do_what_the_role_allows(server: Server) -> None:
    credential = server.password("dev1", "secret")
    assert credential is not None
    assert (credential.owner, credential.label, credential.role) == ("dev1", "", Role.AUTHOR)
    assert allowed(credential) == ROLES[Role.AUTHOR]
    assert actor_of({**SCOPE, CREDENTIAL_KEY: credential}).name == "dev1"


@pytest.mark.parametrize(
    ("name", "password"), [("dev1", "Secret"), ("dev1", ""), ("dev2", "secret"), ("", "")]
)
def test_wrong_name_or_password_is_rejected(server: Server, name: str, password: str) -> None:
    assert server.password(name, password) is None


def test_user_without_a_password_cannot_sign_in_with_one(server: Server) -> None:
    server.accounts.add("new", Role.READER, ADMIN)
    server.refresh()
    assert server.password("new", "") is None


def test_token_may_do_what_its_scopes_and_the_role_of_its_owner_allow(server: Server) -> None:
    everything = server.access_tokens.create("all", "dev1", actor=ACTOR).text
    read = server.access_tokens.create("read", "dev1", [AccessScope.READ], actor=ACTOR).text
    server.refresh()
    for text, expected in (
        (everything, ROLES[Role.AUTHOR] - {Action.SEND_INVENTORY}),
        (read, {Action.READ, Action.MANAGE_OWN_ACCOUNT}),
    ):
        credential = server.token(text)
        assert credential is not None
        assert allowed(credential) == expected
    assert actor_of({**SCOPE, CREDENTIAL_KEY: server.token(read)}).name == "dev1/read"


def test_token_of_an_owner_that_is_no_user_is_limited_by_scopes_only(server: Server) -> None:
    credential = server.token(server.access_tokens.create("ci", "somewhere", actor=ACTOR).text)
    assert credential is None  # not yet known
    text = server.access_tokens.create("ci2", "somewhere", actor=ACTOR).text
    server.refresh()
    credential = server.token(text)
    assert credential is not None
    assert (credential.role, credential.owner) == (Role.ADMINISTRATOR, "somewhere")


def test_change_of_role_counts_for_cookies_and_tokens_at_once(server: Server) -> None:
    text = server.access_tokens.create("ci", "dev1", actor=ACTOR).text
    credential = server.password("dev1", "secret")
    assert credential is not None
    cookie = server.sign_in(credential)
    server.accounts.set_role("dev1", Role.READER, ADMIN)
    server.refresh()
    assert not server.credentials.is_valid(credential)  # open streams end
    for now in (server.credentials.authenticate_cookie(cookie), server.token(text)):
        assert now is not None
        assert now.role is Role.READER


def test_disabled_user_is_rejected_until_enabled(server: Server) -> None:
    text = server.access_tokens.create("ci", "dev1", actor=ACTOR).text
    server.refresh()
    credential = server.token(text)
    assert credential is not None
    cookies = [server.sign_in(credential), server.sign_in(Credential(user=credential.user))]
    server.accounts.disable("dev1", ADMIN)
    server.refresh()
    assert not server.credentials.is_valid(credential)
    with pytest.raises(HttpError, match="owner of the access token is disabled"):
        server.token(text)
    assert server.password("dev1", "secret") is None
    assert not any(map(server.credentials.authenticate_cookie, cookies))
    server.accounts.enable("dev1", ADMIN)
    server.refresh()
    assert server.token(text)
    assert server.password("dev1", "secret")
    assert not any(map(server.credentials.authenticate_cookie, cookies))  # they ended


def test_removed_user_leaves_no_token_with_more_rights(server: Server) -> None:
    text = server.access_tokens.create("ci", "dev1", actor=ACTOR).text
    server.refresh()
    server.accounts.remove("dev1", ADMIN)
    server.users.try_refresh()  # before the tokens
    with pytest.raises(HttpError, match="disabled"):
        server.token(text)
    server.refresh()
    assert server.token(text) is None


def test_sign_ins_of_a_user_are_listed_however_they_were_made(server: Server) -> None:
    text = server.access_tokens.create("ci", "dev1", actor=ACTOR).text
    server.refresh()
    by_token, by_password = server.token(text), server.password("dev1", "secret")
    assert by_token is not None
    assert by_password is not None
    cookies = [server.sign_in(by_token), server.sign_in(by_password)]
    rows = server.credentials.list_sign_ins(by_password)
    assert len(rows) == 2
    for row in rows:
        assert server.credentials.end_sign_in(by_password, row.id, SYSTEM_ACTOR)
    assert not any(map(server.credentials.authenticate_cookie, cookies))


def test_first_user_turns_sign_in_on(tmp_path: Path) -> None:
    database = SwitchableDatabase(build_sqlite_url(str(tmp_path / "b.db")), TIMESTAMP)
    table, recorder = SqlUserTable(database), UseRecorder()
    with closing(database), closing(recorder), closing(UserCache(table, recorder)) as users:
        credentials, required = Credentials(ServerSettings(), users=users), []
        for change in (
            lambda: None,
            lambda: UserAccounts(table).add("dev1", Role.READER, ADMIN),
            lambda: UserAccounts(table).remove("dev1", ADMIN),
        ):
            change()
            users.try_refresh()
            required.append(credentials.is_required)
        assert required == [False, True, False]


def test_outage_of_the_database_does_not_open_a_server_with_users(server: Server) -> None:
    server.database.is_down = True
    server.refresh()
    assert server.credentials.is_required
    assert server.password("dev1", "secret")  # known users can still sign in
    with closing(UserCache(SqlUserTable(server.database), UseRecorder())) as restarted:
        restarted.try_refresh()
        assert Credentials(ServerSettings(), users=restarted).is_required


def test_long_outage_of_the_database_refuses_all_but_the_operator(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.access_tokens.create("ci", "dev1", actor=ACTOR).text
    server.refresh()
    credential = server.token(token)
    assert credential is not None
    cookie = server.sign_in(credential)
    server.refresh()
    server.database.is_down = True
    server.refresh()
    assert server.token(token) == credential
    assert server.credentials.authenticate_cookie(cookie)
    monkeypatch.setattr(credential_cache, "OUTAGE_LIMIT", 0.0)
    for authenticate in (
        partial(server.token, token),
        partial(server.password, "dev1", "secret"),
        partial(server.credentials.authenticate_cookie, cookie),
    ):
        with pytest.raises(DatabaseUnavailable, match="15 minutes"):
            authenticate()
    assert not server.credentials.is_valid(credential)
    with_token = Credentials(
        ServerSettings(auth_token=Secret("operator-token")), server.tokens, server.sign_ins
    )
    assert with_token.authenticate_token(b"operator-token", SCOPE) == Credential()
    server.database.is_down = False
    server.refresh()
    assert server.token(token) == credential


def test_server_whose_database_does_not_exist_yet_has_no_users(server: Server) -> None:
    server.database.is_down = True
    table = SqlUserTable(server.database)
    with closing(UserCache(table, UseRecorder(), may_have_users=False)) as users:
        users.try_refresh()
        assert not Credentials(ServerSettings(), users=users).is_required


def test_sign_in_by_the_operators_token_ends_with_the_token(server: Server) -> None:
    with_token = Credentials(
        ServerSettings(auth_token=Secret("operator-token")),
        server.tokens,
        server.sign_ins,
        server.users,
    )
    header = with_token.sign_in(Credential(), SCOPE).partition(b";")[0]
    cookie = read_cookie(header, SESSION_COOKIE)
    assert with_token.authenticate_cookie(cookie)
    assert not server.credentials.authenticate_cookie(cookie)  # no operator's token is set


def test_wrong_passwords_are_limited_per_address_and_per_user(server: Server) -> None:
    def attempt(name: str, address: str, password: str = "") -> Credential | None:
        scope = {**SCOPE, "client": (address, 1)}
        return server.credentials.authenticate_password(name, password, compare_plain, scope)

    for number in range(MAX_FAILURES):
        assert attempt(f"user{number}", "192.0.2.7") is None
    with pytest.raises(HttpError, match="too many invalid passwords from this address"):
        attempt("dev1", "192.0.2.7", "secret")
    for number in range(MAX_FAILURES):
        assert attempt("dev1", f"198.51.100.{number}") is None
    with pytest.raises(HttpError, match="too many invalid passwords for this user"):
        attempt("dev1", "203.0.113.1", "secret")


def test_seen_time_of_a_user_is_recorded(server: Server) -> None:
    assert server.accounts.find("dev1").used is None
    server.password("dev1", "secret")
    server.users._recorder.close()  # noqa: SLF001 - writes what is pending
    assert server.accounts.find("dev1").used is not None
