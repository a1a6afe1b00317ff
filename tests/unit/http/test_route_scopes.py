"""Scopes of the routes of all surfaces."""

import pytest

from skillhall._internal import asgi
from skillhall._internal.http.route_scopes import check_scope, required_scope
from skillhall._internal.policy.access_scopes import AccessScope
from skillhall._internal.rest import health, prompt_routes, skill_routes, webhooks, well_known
from skillhall._internal.web.routes import ROUTES
from skillhall.errors import ScopeRequired

_REST_MODULES = (
    prompt_routes,
    skill_routes,
    health,
    webhooks,
    well_known,
    *asgi._SESSION_ROUTES,  # noqa: SLF001 - all routes must be here
)
_SAFE = {"GET", "HEAD", "OPTIONS"}
# Routes whose scope does not follow from their method.
EXCEPTIONS = {
    ("POST", "/settings"): None,
    ("POST", "/sign-out"): None,
    ("GET", "/account"): None,
    ("POST", "/account/sign-ins/{id}/end"): None,
    ("POST", "/api/v1/prompts/{name}"): AccessScope.READ,
    ("POST", "/api/v1/skills/check"): AccessScope.READ,
    ("GET", "/api/v1/folder-skills"): AccessScope.WRITE,
    ("POST", "/sources/refresh"): AccessScope.ADMIN,
    ("POST", "/sources/follow"): AccessScope.ADMIN,
    ("POST", "/sources/unfollow"): AccessScope.ADMIN,
}


def list_routes() -> list[tuple[str, str]]:
    """Return method and path of every route."""
    routes = [(route[0], route[1]) for route in ROUTES]
    for module in _REST_MODULES:
        for route in module.router.routes:
            methods, path = vars(route)["methods"], vars(route)["path"]
            routes += [(method, path) for method in methods]
    return [(method, path.replace(":path}", "}")) for method, path in routes]


@pytest.mark.parametrize(("method", "path"), sorted({*list_routes()}))
def test_unsafe_route_needs_write_unless_it_is_an_exception(method: str, path: str) -> None:
    by_method = AccessScope.READ if method in _SAFE else AccessScope.WRITE
    expected = EXCEPTIONS.get((method, path), by_method)
    assert required_scope(method, path) == expected


def test_every_exception_is_a_route() -> None:
    assert EXCEPTIONS.keys() <= {*list_routes()}


@pytest.mark.parametrize("path", ["/api/v1/prompts/refresh", "/api/v1/prompts/sources"])
def test_changes_of_prompts_are_not_taken_for_prompts(path: str) -> None:
    assert required_scope("POST", path) == AccessScope.WRITE


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/prompts/a/b", "/api/v1/prompts/refreshed"])
def test_mcp_and_prompts_are_read_with_post(path: str) -> None:
    assert required_scope("POST", path) == AccessScope.READ


@pytest.mark.parametrize("path", ["/mcp/x", "/api/v1/skills/checks", "/new", "/sources/x", ""])
def test_unknown_unsafe_route_needs_write(path: str) -> None:
    assert required_scope("POST", path) == AccessScope.WRITE


def test_missing_scope_is_named() -> None:
    check_scope("GET", "/api/v1/skills", ("read",))
    check_scope("POST", "/sign-out", ())
    for method, path, scope in (
        ("GET", "/api/v1/skills", "read"),
        ("POST", "/api/v1/skills", "write"),
        ("POST", "/sources/follow", "admin"),
    ):
        with pytest.raises(ScopeRequired, match=f"needs the scope '{scope}'"):
            check_scope(method, path, ("report",))
