"""Actor: who makes a change, and through which surface."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.access.access_scopes import OPERATOR

if TYPE_CHECKING:
    from collections.abc import Mapping

# In place of a token id, a sign-in without a token has this prefix and the user's id.
USER_OWNER_PREFIX = "user-"


class Via(StrEnum):
    """Surface through which an actor makes a change."""

    WEB = "web"
    REST = "rest"
    MCP = "mcp"
    CLI = "cli"
    WEBHOOK = "webhook"
    SYSTEM = "system"  # the server itself, for example a cleanup


class Actor(NamedTuple):
    """User, token and request behind a change. The audit log records it."""

    user: str = OPERATOR  # name of the user, or of the owner of the token
    # Label of the token; "" for a password, OIDC or the operator's token. Commands: the OS user.
    token: str = ""
    via: Via = Via.SYSTEM
    address: str = ""  # IP address of the client
    request_id: str = ""

    @property
    def name(self) -> str:
        """The user, with the token if there is one: `dev1/ci`."""
        return f"{self.user}/{self.token}" if self.token else self.user


class AuditedChange(NamedTuple):
    """A change with its actor, and digests before and after by subject; "" if none."""

    actor: Actor
    action: str  # name in the audit log, such as skill.edit
    digests: Mapping[str, tuple[str, str]]


SYSTEM_ACTOR = Actor("system")
