"""Every role on every route, page and MCP method: allowed, or refused with 403."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.mcp.server import METHOD_ACTIONS, TOOL_ACTIONS
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.roles import ACTION_SCOPES, ROLES, Action, Role
from skillhall._internal.storage.audit.audit_query import AuditFilter, AuditLog
from tests.support.account_server import AccountServer, account_settings, run_account_server
from tests.support.actors import ACTOR
from tests.support.servers import DEADLINE, TOKEN
from tests.unit.http.test_access import list_pages, list_rest_routes

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REFUSED = re.compile(
    rb"the role (?:'|&#39;)\w+(?:'|&#39;) cannot|needs the scope (?:'|&#39;)\w+", re.IGNORECASE
)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    settings = account_settings(tmp_path_factory.mktemp("roles"))
    with run_account_server(settings) as server:
        yield server


def is_refused(hall: AccountServer, method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Whether the role of the credential does not allow a request. Streams are not read."""
    body = None if method == "GET" else b""
    url = re.sub(r"\{\w+\}", "unknown", path)
    with closing(HTTPConnection("127.0.0.1", hall.server.port, timeout=DEADLINE)) as connection:
        connection.request(method, url, body, dict(headers))
        response = connection.getresponse()
        assert response.status != 401 or path == "/sign-in", (method, path)
        return response.status == 403 and REFUSED.search(response.read()) is not None


@pytest.mark.parametrize("role", Role)
def test_rest_routes_allow_what_the_role_allows(hall: AccountServer, role: Role) -> None:
    refused = {
        route
        for route in list_rest_routes()
        if is_refused(hall, *route, {**hall.bearer(role), "Content-Type": "application/json"})
    }
    assert refused == forbidden(list_rest_routes(), role)


@pytest.mark.parametrize("role", Role)
def test_pages_allow_what_the_role_allows(hall: AccountServer, role: Role) -> None:
    cookie, refused = hall.cookie(role), set()
    for route in list_pages():
        if is_refused(hall, *route, {**cookie, **FORM, "Accept": "text/html"}):
            refused.add(route)
        if route == ("POST", "/sign-out"):
            cookie = hall.cookie(role)
    assert refused == forbidden(list_pages(), role)


@pytest.mark.parametrize("scope", AccessScope)
def test_rest_routes_and_mcp_allow_what_the_scope_allows(
    hall: AccountServer, scope: AccessScope
) -> None:
    created = hall.accounts.tokens.create(f"scope {scope}", "administrator", [scope], actor=ACTOR)
    hall.database.token_cache.try_refresh()
    bearer = {"Authorization": f"Bearer {created.text}"}
    headers = {**bearer, "Content-Type": "application/json"}
    routes, granted = list_rest_routes(), {None, *created.stored.scopes}
    refused = {route for route in routes if is_refused(hall, *route, headers)}
    assert refused == {
        route
        for route, action in routes.items()
        if action is not None and ACTION_SCOPES[action] not in granted
    }
    accepted = {**bearer, "Accept": "application/json, text/event-stream"}
    status = hall.server.request("POST", "/mcp", INITIALIZE, accepted).status
    assert status == (200 if AccessScope.READ in granted else 403)


def forbidden(routes: Mapping[tuple[str, str], Action | None], role: Role) -> set[tuple[str, str]]:
    """Return the routes whose action the role does not include."""
    return {
        route
        for route, action in routes.items()
        if action is not None and action not in ROLES[role]
    }


@pytest.mark.parametrize("role", Role)
def test_mcp_allows_what_the_role_allows(hall: AccountServer, role: Role) -> None:
    headers = {**hall.bearer(role), "Accept": "application/json, text/event-stream"}
    assert hall.server.request("POST", "/mcp", INITIALIZE, headers).status == 200
    # As long as MCP only reads, no role is refused.
    assert {*METHOD_ACTIONS.values(), *TOOL_ACTIONS.values()} <= ROLES[role]


def test_operators_token_may_do_everything(hall: AccountServer) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    assert not any(is_refused(hall, *route, headers) for route in list_rest_routes())


# Every command that sends a token to a server, and the action that it needs there.
COMMANDS = {
    "prompts list --server {url}": Action.READ,
    "prompts get plan-skill --server {url}": Action.READ,
    "generate --server {url} --path {folder}/generated": Action.READ,
    "prompts refresh --server {url}": Action.REFRESH,
    "prompts upload {folder} --source team --server {url}": Action.REFRESH,
    "inventory send {url} --as laptop-{owner}": Action.SEND_INVENTORY,
}


def list_refused_commands(hall: AccountServer, owner: str, folder: Path) -> set[str]:
    """Return the commands that the server refuses."""
    names = {"url": f"http://127.0.0.1:{hall.server.port}", "folder": folder, "owner": owner}
    codes = {text: run(text.format(**names).split()) for text in COMMANDS}
    assert {*codes.values()} <= {0, 8}, codes
    return {text for text, code in codes.items() if code == 8}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a prompt to upload."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/hello.md").write_text(
        "---\nname: hello\ndescription: Greets.\n---\nHello.\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path / "prompts")
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8")
    return tmp_path / "prompts"


@pytest.mark.parametrize("role", Role)
def test_command_line_is_refused_what_the_role_does_not_allow(
    hall: AccountServer, role: Role, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLHALL_SERVER_TOKEN", hall.tokens[role])
    refused = {text for text, action in COMMANDS.items() if action not in ROLES[role]}
    assert list_refused_commands(hall, role.value, folder) == refused


@pytest.mark.parametrize("scope", AccessScope)
def test_command_line_is_refused_what_the_scope_does_not_allow(
    hall: AccountServer, scope: AccessScope, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = hall.accounts.tokens.create(f"only {scope}", "administrator", [scope], actor=ACTOR)
    hall.database.token_cache.try_refresh()
    monkeypatch.setenv("SKILLHALL_SERVER_TOKEN", created.text)
    granted = created.stored.scopes
    refused = {text for text, action in COMMANDS.items() if ACTION_SCOPES[action] not in granted}
    assert list_refused_commands(hall, "administrator", folder) == refused


def test_read_token_of_an_administrator_cannot_write(hall: AccountServer) -> None:
    accounts = hall.accounts
    text = accounts.tokens.create(
        "read only", "administrator", [AccessScope.READ], actor=ACTOR
    ).text
    hall.database.token_cache.try_refresh()
    headers = {"Authorization": f"Bearer {text}"}
    assert hall.server.request("GET", "/api/v1/skills", headers=headers).status == 200
    for method, path in (("POST", "/api/v1/skills"), ("GET", "/api/v1/users")):
        assert hall.server.request(method, path, headers=headers).status == 403


# Users and one's own account


def test_administrator_manages_users(hall: AccountServer) -> None:
    hall.server.headers = hall.bearer(Role.ADMINISTRATOR)
    added = hall.server.request("POST", "/api/v1/users", {"name": "new", "role": "author"})
    assert added.status == 201
    link = added.json["data"]["link"]
    assert link.startswith(f"http://127.0.0.1:{hall.server.port}/join#")
    path = "/api/v1/users/new"
    changed = hall.server.request("PATCH", path, {"role": "reviewer", "disabled": True})
    assert changed.json["data"]["role"] == "reviewer"
    assert hall.server.request("GET", path).json["data"]["state"] == "disabled"
    assert hall.server.request("POST", f"{path}/link").status == 400
    assert hall.server.request("PATCH", path, {"disabled": False}).status == 200
    assert hall.server.request("POST", f"{path}/link").json["data"]["link"] != link
    assert hall.server.request("POST", "/api/v1/users", {"name": "new"}).status == 409
    assert hall.server.request("DELETE", path).json["data"] == {"removed": "new"}
    assert hall.server.request("GET", path).status == 404
    own = hall.server.request("PATCH", "/api/v1/users/administrator", {"role": "reader"})
    assert own.status == 400
    names = [
        user["name"] for user in hall.server.request("GET", "/api/v1/users").json["data"]["users"]
    ]
    assert names == ["administrator", "author", "reader", "reviewer"]


def test_administrator_lists_and_revokes_the_tokens_of_others(hall: AccountServer) -> None:
    stored = hall.accounts.tokens.create("of an author", "author", actor=ACTOR).stored
    hall.database.token_cache.try_refresh()
    hall.server.headers = hall.bearer(Role.ADMINISTRATOR)

    def list_labels(query: str = "") -> list[str]:
        reply = hall.server.request("GET", f"/api/v1/tokens{query}")
        return [token["label"] for token in reply.json["data"]["tokens"]]

    assert "of an author" in list_labels()
    path = f"/api/v1/tokens/{stored.id}"
    assert hall.server.request("DELETE", path).json["data"] == {"revoked": stored.id}
    assert hall.server.request("DELETE", path).status == 404
    assert "of an author" not in list_labels()
    assert "of an author" in list_labels("?revoked=true")
    [row] = AuditLog(hall.database.database).newest(AuditFilter(action="token.revoke"), limit=1)
    assert (row["actor"], row["via"]) == ("administrator", "rest")


def test_user_manages_own_tokens_only(hall: AccountServer) -> None:
    cookie, tokens = hall.cookie(Role.AUTHOR), "/api/v1/account/tokens"
    hall.server.headers = {}

    def send(method: str, path: str, body: object = None, **headers: str) -> int:
        return hall.server.request(method, path, body, headers or cookie).status

    body = {"label": "mine", "scopes": ["read"], "days": 30}
    created = hall.server.request("POST", tokens, body, cookie)
    assert created.status == 201
    data = created.json["data"]
    assert (data["owner"], data["scopes"], data["state"]) == ("author", ["read"], "active")
    listed = hall.server.request("GET", tokens, headers=cookie).json["data"]["tokens"]
    assert [token["label"] for token in listed] == ["token of author", "mine"]
    hall.database.token_cache.try_refresh()
    mine = {"Authorization": f"Bearer {data['token']}"}
    # A token gives no more than it has.
    assert send("POST", tokens, {"label": "more", "scopes": ["write"]}, **mine) == 403
    assert send("POST", tokens, {"label": "longer", "scopes": ["read"]}, **mine) == 403
    # The tokens of others do not exist.
    other = hall.accounts.tokens.create("other", "reader", actor=ACTOR).stored
    assert send("DELETE", f"{tokens}/{other.id}") == 404
    assert send("DELETE", f"{tokens}/{data['id']}") == 200
    account = hall.server.request("GET", "/api/v1/account", headers=cookie).json["data"]
    assert (account["name"], account["role"], account["token"]) == ("author", "author", "")
    operator = {"Authorization": f"Bearer {TOKEN}"}
    assert send("GET", tokens, **operator) == 404  # the operator is no user
