"""Users as JSON, and the links where they set their password."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.settings import ServerSettings
    from skillhall._internal.wiring.database import User  # imports the database driver

JOIN_PATH = "/join"


def build_join_link(server: ServerSettings, code: str) -> str:
    """Return the link with a code.

    The code is in the fragment, which browsers do not send, so that no server or proxy logs it.
    """
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{server.public_url or f'http://{host}:{server.port}'}{JOIN_PATH}#{code}"


def serialize_user(user: User) -> dict[str, object]:
    """Return a user as JSON, without secrets."""
    return {
        "name": user.name,
        "display": user.display,
        "role": user.role,
        "state": describe_state(user),
        "issuer": user.issuer,
        "created": user.created,
        "seen": user.used,
    }


def describe_state(user: User) -> str:
    """Return "active", "disabled", or "invited" if the user has not signed in yet."""
    if user.disabled is not None:
        return "disabled"
    return "active" if user.password or user.issuer else "invited"
