"""The actions of all routes, pages, MCP methods and tools, and the actors of requests."""

import importlib
import pkgutil
from dataclasses import fields
from typing import Any

import pytest
from fastapi import APIRouter

from skillhall._internal import rest
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.http.access import action_of, actor_of, check_action, may, needs
from skillhall._internal.http.auth_middleware import (
    PUBLIC_PATHS,
    PUBLIC_PREFIX,
    SIGN_IN_PATHS,
    SIGNED_PATHS,
)
from skillhall._internal.http.credentials import Credential
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import CREDENTIAL_KEY, REQUEST_ID_KEY
from skillhall._internal.mcp.server import METHOD_ACTIONS, TOOL_ACTIONS
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import Actor, Via
from skillhall._internal.policy.access.roles import ACTION_SCOPES, Action
from skillhall._internal.rest.api_route import ApiRoute
from skillhall._internal.rest.app import OPENAPI_PATHS, build_fastapi_app
from skillhall._internal.storage.records import StoredToken
from skillhall._internal.web.routes import ROUTES
from skillhall.errors import ScopeRequired

# Every module of the package, so that no router is forgotten.
REST_MODULES = [
    module
    for info in pkgutil.walk_packages(rest.__path__, f"{rest.__name__}.")
    if hasattr(module := importlib.import_module(info.name), "router")
]
_SAFE = {"GET", "HEAD", "OPTIONS"}
# Routes with a safe method that prepare a change, and with an unsafe one that only read.
SAFE_WRITES = {("GET", "/api/v1/folder-skills")}
UNSAFE_READS = {("POST", "/api/v1/prompts/{name}"), ("POST", "/api/v1/skills/check")}


def list_rest_routes() -> dict[tuple[str, str], Action | None]:
    """Return the action of every REST route, by method and path."""
    return {
        (method, vars(route)["path"].replace(":path}", "}")): action_of(vars(route)["endpoint"])
        for module in REST_MODULES
        for route in module.router.routes
        for method in vars(route)["methods"]
    }


def list_pages() -> dict[tuple[str, str], Action | None]:
    """Return the action of every page, by method and path."""
    return {(row[0], row[1].replace(":path}", "}")): row[2] for row in ROUTES}


def make_scope(credential: Credential | None, path: str = "/skills", **values: Any) -> Any:  # noqa: ANN401 - an ASGI scope
    """Return the scope of a request with a credential."""
    return {"path": path, CREDENTIAL_KEY: credential, **values}


def make_token(*scopes: AccessScope) -> StoredToken:
    """Return a token of dev1 with the label "ci"."""
    return StoredToken("1", "ci", "digest", "2026-01-01T00:00:00", "dev1", scopes)


@pytest.mark.parametrize(("route", "action"), sorted(list_rest_routes().items()))
def test_rest_route_that_changes_something_needs_more_than_read(
    route: tuple[str, str], action: Action | None
) -> None:
    assert route[0] in _SAFE or action is not Action.READ or route in UNSAFE_READS
    assert action is not Action.READ or route not in SAFE_WRITES


@pytest.mark.parametrize(("route", "action"), sorted(list_pages().items()))
def test_page_that_changes_something_needs_more_than_read(
    route: tuple[str, str], action: Action | None
) -> None:
    assert route[0] == "GET" or action is not Action.READ


def test_routes_without_an_action_are_those_that_need_no_credential() -> None:
    routes = {**list_rest_routes(), **list_pages()}
    public = {path for (_, path), action in routes.items() if action is None} | {*OPENAPI_PATHS}
    expected = {*PUBLIC_PATHS, *SIGNED_PATHS, *SIGN_IN_PATHS, f"{PUBLIC_PREFIX}{{path}}"}
    assert public == expected


def test_every_tool_has_an_action() -> None:
    names = next(field for field in fields(SkillTools) if field.name == "tool_names").default
    assert names == (*TOOL_ACTIONS,)
    assert {*METHOD_ACTIONS.values(), *TOOL_ACTIONS.values()} == {Action.READ}


def test_route_that_names_no_action_cannot_be_declared() -> None:
    router = APIRouter(route_class=ApiRoute)

    def forgotten() -> None: ...

    with pytest.raises(TypeError, match="forgotten names no action"):
        router.get("/forgotten")(forgotten)


def test_server_with_a_route_that_names_no_action_does_not_start() -> None:
    router = APIRouter()

    @router.get("/forgotten")
    def forgotten() -> None: ...

    async def start() -> None: ...

    with pytest.raises(TypeError, match="forgotten names no action"):
        build_fastapi_app([router], start)


def test_endpoint_names_its_action() -> None:
    assert action_of(needs(Action.CHAT)(lambda: None)) is Action.CHAT
    assert action_of(needs(None)(lambda: None)) is None


def test_server_without_credentials_allows_everything() -> None:
    assert all(may({"path": "/"}, action) for action in Action)


def test_request_without_the_credential_that_it_needs_may_do_nothing_but_public_things() -> None:
    scope = make_scope(None, "/sign-in")
    assert not any(may(scope, action) for action in Action)
    check_action(scope, None)
    with pytest.raises(HttpError, match="token missing"):
        check_action(scope, Action.READ)


@pytest.mark.parametrize("action", Action)
def test_token_needs_the_scope_of_the_action(action: Action) -> None:
    needed = ACTION_SCOPES[action]
    for scope in AccessScope:
        request = make_scope(Credential(make_token(scope)))
        assert may(request, action) == (needed in {None, scope})
    assert may(make_scope(Credential()), action)  # the operator's token


def test_missing_scope_is_named() -> None:
    with pytest.raises(ScopeRequired, match="cannot change sources: it needs the scope 'admin'"):
        check_action(make_scope(Credential(make_token())), Action.MANAGE_SOURCES)


@pytest.mark.parametrize(
    ("path", "via"),
    [
        ("/skills", Via.WEB),
        ("/", Via.WEB),
        ("/api/v1/skills", Via.REST),
        ("/.well-known/agent-skills/index.json", Via.REST),
        ("/metrics", Via.REST),
        ("/mcp", Via.MCP),
    ],
)
def test_actor_is_the_owner_of_the_token_on_a_surface(path: str, via: Via) -> None:
    values: Any = {"client": ("192.0.2.7", 1234), REQUEST_ID_KEY: "r1"}
    actor = actor_of(make_scope(Credential(make_token()), path, **values))
    assert actor == Actor("dev1", "ci", via, "192.0.2.7", "r1")
    assert actor.name == "dev1/ci"


def test_actor_is_the_operator_with_the_operators_token_and_without_credentials() -> None:
    assert actor_of(make_scope(Credential())).name == "operator"
    assert actor_of({"path": "/skills"}).name == "operator"


def test_actor_of_a_public_request_has_no_name() -> None:
    assert actor_of(make_scope(None, "/sign-in")).name == ""


def test_actor_of_a_push_is_the_webhook() -> None:
    assert actor_of({"path": "/api/v1/webhooks/git"})[:3] == ("webhook", "", Via.WEBHOOK)
