"""Scopes that the routes of REST, MCP and the web pages require."""

from __future__ import annotations

import re
from collections.abc import Collection

from skillhall._internal.policy.access_scopes import AccessScope
from skillhall.errors import ScopeRequired

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Pages about the user's own sign-ins and preferences, open to every token.
_OWN_PAGES = re.compile(r"/(?:sign-out|settings|account(?:/.*)?)")
_ADMIN_PAGES = frozenset({"/sources/refresh", "/sources/follow", "/sources/unfollow"})
# Requests that read, although their method may be unsafe.
_READ_POSTS = re.compile(r"/mcp/?|/api/v1/skills/check|/api/v1/prompts/(?!(?:refresh|sources)$).*")
# Requests that are part of a change, although their method is safe.
_WRITE_GETS = frozenset({"/api/v1/folder-skills"})  # lists folders of the server
_ACTIONS = {
    AccessScope.READ: "read from this server",
    AccessScope.WRITE: "make changes",
    AccessScope.ADMIN: "change sources",
}


def required_scope(method: str, path: str) -> AccessScope | None:
    """Return the scope that a request needs; None if any token is enough.

    A route that is not listed here needs `read` if its method is safe, else `write`.
    """
    if _OWN_PAGES.fullmatch(path):
        return None
    if method in _SAFE_METHODS:
        return AccessScope.WRITE if path in _WRITE_GETS else AccessScope.READ
    if path in _ADMIN_PAGES:
        return AccessScope.ADMIN
    return AccessScope.READ if _READ_POSTS.fullmatch(path) else AccessScope.WRITE


def check_scope(method: str, path: str, scopes: Collection[str]) -> None:
    """Check that a credential with these scopes may send a request. Raises: ScopeRequired."""
    scope = required_scope(method, path)
    if scope is not None and scope not in scopes:
        raise ScopeRequired(scope.value, _ACTIONS[scope])
