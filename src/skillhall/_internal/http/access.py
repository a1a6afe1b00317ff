"""Access to routes: the action of each route, access checks, and the actor of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.types import Scope

from skillhall._internal.http.credentials import CHALLENGE_HEADERS, Credential
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import CREDENTIAL_KEY, REFUSED_KEY, REQUEST_ID_KEY
from skillhall._internal.policy.access.access_scopes import OPERATOR
from skillhall._internal.policy.access.actor import Actor, Via
from skillhall._internal.policy.access.roles import ACTION_SCOPES, ROLES, Action
from skillhall.errors import RoleRequired, ScopeRequired

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import ServerAudit  # imports the database driver

_F = TypeVar("_F", bound=Callable[..., Any])
_ACTION_ATTRIBUTE = "skillhall_action"
# Starts of paths, and the surface behind them. All other paths are pages.
_SURFACES = {
    "/api/v1/webhooks/": Via.WEBHOOK,
    "/api/": Via.REST,
    "/.well-known/": Via.REST,
    "/metrics": Via.REST,
    "/mcp": Via.MCP,
}
# Completes the sentence "this token cannot …".
_DESCRIPTIONS: Mapping[Action, str] = {
    Action.READ: "read from this server",
    Action.MANAGE_OWN_ACCOUNT: "change this account",
    Action.WRITE_SKILLS: "change skills",
    Action.WRITE_SESSIONS: "change sessions",
    Action.CHAT: "use the model of this server",
    Action.REFRESH: "refresh or upload prompts",
    Action.REVIEW_SKILLS: "review skills",
    Action.MANAGE_USERS: "manage users",
    Action.MANAGE_TOKENS: "manage the tokens of other users",
    Action.MANAGE_SOURCES: "change sources",
    Action.USE_GIT_TOKENS: "use the git tokens of this server",
    Action.READ_AUDIT: "read the audit log",
    Action.READ_INVENTORY: "read the inventory",
    Action.READ_STATUS: "read the status of this server",
    Action.MANAGE_SETTINGS: "change the settings of this server",
    Action.SEND_INVENTORY: "send an inventory",
}


def needs(action: Action | None) -> Callable[[_F], _F]:
    """Declare the action of an endpoint; None makes it public."""

    def mark(endpoint: _F) -> _F:
        vars(endpoint)[_ACTION_ATTRIBUTE] = action
        return endpoint

    return mark


def action_of(endpoint: Callable[..., Any]) -> Action | None:
    """Return the action of an endpoint; None if it is public.

    Raises: TypeError if it names none. A server with such an endpoint does not start.
    """
    try:
        action: Action | None = vars(endpoint)[_ACTION_ATTRIBUTE]
    except KeyError:
        raise TypeError(f"{endpoint.__name__} names no action; add @needs(…)") from None
    return action


def check_action(scope: Scope, action: Action | None) -> None:
    """Check that a request may perform an action. Public endpoints (None) are open to all.

    Raises: RoleRequired, ScopeRequired, HttpError if the request has no credential.
    """
    if action is None or CREDENTIAL_KEY not in scope or may(scope, action):
        return
    credential: Credential | None = scope[CREDENTIAL_KEY]
    if credential is None:
        message = "bearer token missing or invalid"
        raise HttpError("unauthenticated", message, headers=CHALLENGE_HEADERS)
    scope[REFUSED_KEY] = action
    needed = ACTION_SCOPES[action]
    if needed is None or action not in ROLES[credential.role]:
        raise RoleRequired(credential.role.value, _DESCRIPTIONS[action])
    raise ScopeRequired(needed.value, _DESCRIPTIONS[action])


def may(scope: Scope, action: Action) -> bool:
    """Whether a request may perform an action."""
    if CREDENTIAL_KEY not in scope:  # this server requires no credential
        return True
    credential: Credential | None = scope[CREDENTIAL_KEY]
    if credential is None or action not in ROLES[credential.role]:
        return False
    needed = ACTION_SCOPES[action]
    return needed is None or needed in credential.scopes


def actor_of(scope: Scope) -> Actor:
    """Return who sent a request, and through which surface.

    The user is the operator if the server requires no credential, and "" if the credential is
    missing: on public routes, such as the one that signs in.
    """
    path = scope["path"]
    via = next((via for start, via in _SURFACES.items() if path.startswith(start)), Via.WEB)
    user, token = OPERATOR, ""
    if via is Via.WEBHOOK:
        user = via.value
    elif CREDENTIAL_KEY in scope:
        credential: Credential | None = scope[CREDENTIAL_KEY]
        user = "" if credential is None else credential.owner
        token = "" if credential is None else credential.label
    address = str(scope["client"][0]) if scope.get("client") else ""
    return Actor(user, token, via, address, scope.get(REQUEST_ID_KEY, ""))


def record_refusal(audit: ServerAudit, scope: Scope) -> None:
    """Record in the audit log that a request was refused for its credential. Never blocks."""
    if scope.get(CREDENTIAL_KEY) is not None:
        action = scope.get(REFUSED_KEY)
        audit.refusals.record(
            actor_of(scope),
            "request" if action is None else str(action),
            method=scope["method"],
            path=scope["path"],
        )


def record_failed_sign_in(audit: ServerAudit, scope: Scope, name: str) -> None:
    """Record a wrong token or password in the audit log. Never blocks.

    `name` is that of the known user or token, or "".
    """
    actor = actor_of(scope)._replace(user="", token="")
    audit.refusals.record(actor, "sign-in", name)
