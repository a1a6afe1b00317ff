"""Users and tokens as JSON, links for new users, and tokens that users create."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.access.access_scopes import (
    DEFAULT_SCOPES,
    AccessScope,
    expand_scopes,
)
from skillhall._internal.policy.access.roles import ACTION_SCOPES, ROLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from skillhall._internal.http.credentials import Credential
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.settings import ServerSettings
    from skillhall._internal.wiring.database import (  # imports the database driver
        AccessTokens,
        NewToken,
        Token,
        User,
    )

JOIN_PATH = "/join"


def build_join_link(server: ServerSettings, code: str, own_url: str = "") -> str:
    """Return the link with a code. `own_url` is the one by which a client reaches the server.

    The code is in the fragment, which browsers do not send, so that no server or proxy logs it.
    """
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{server.public_url or own_url or f'http://{host}:{server.port}'}{JOIN_PATH}#{code}"


def serialize_user(user: User) -> dict[str, object]:
    """Return a user as JSON, without secrets."""
    return {
        "name": user.name,
        "display": user.display,
        "role": user.role,
        "state": describe_state(user),
        "issuer": user.issuer,
        "subject": user.subject,
        "created": user.created,
        "seen": user.used,
    }


def describe_state(user: User) -> str:
    """Return "active", "disabled", or "invited" if the user has not signed in yet."""
    if user.disabled is not None:
        return "disabled"
    return "active" if user.password or (user.issuer and user.used) else "invited"


def serialize_token(token: Token, tokens: AccessTokens) -> dict[str, object]:
    """Return a token as JSON, without its text."""
    return {
        "id": token.id,
        "label": token.label,
        "created": token.created,
        "owner": token.owner,
        "scopes": [*token.scopes],
        "expires": token.expires,
        "used": token.used,
        "state": tokens.describe_state(token),
    }


def require_user(credential: Credential | None) -> User:
    """Return the user of a credential. Raises: HttpError if there is none."""
    if credential is None or credential.user is None:
        raise HttpError("not_found", "this credential does not belong to a user")
    return credential.user


def list_own_scopes(credential: Credential) -> list[AccessScope]:
    """Return the scopes for a new token: those of the credential that the role can use."""
    needed = {ACTION_SCOPES[action] for action in ROLES[credential.role]}
    return [scope for scope in AccessScope if scope in needed and scope in credential.scopes]


def create_own_token(  # noqa: PLR0913 - the parts of a token, and who creates it
    tokens: AccessTokens,
    credential: Credential | None,
    label: str,
    scopes: Sequence[AccessScope] | None,
    lifetime: timedelta | None,
    *,
    actor: Actor,
) -> NewToken:
    """Create a token for the user; without `scopes`, it gets the default ones.

    A token cannot create one with more scopes or a later expiry than its own.
    Raises: HttpError, FieldRefused, Conflict, DatabaseUnavailable.
    """
    user = require_user(credential)
    assert credential is not None  # noqa: S101 - it has a user
    parent = credential.token
    if scopes is None:
        scopes = [scope for scope in DEFAULT_SCOPES if scope in credential.scopes]
    excess = {*expand_scopes(scopes)} - {*credential.scopes}
    if excess:
        raise HttpError("forbidden", f"this token cannot grant the scopes: {', '.join(excess)}")
    if parent is not None and parent.expires is not None:
        raise HttpError("forbidden", "a token that expires cannot create tokens")
    return tokens.create(label, user.name, scopes, lifetime, actor=actor)
