"""Actor: who makes a change, and through which surface."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from skillhall._internal.policy.access_scopes import OPERATOR

# A sign-in without a token has the id of the user, after this prefix, in place of the token's.
USER_OWNER_PREFIX = "user-"


class Via(StrEnum):
    """Surface through which an actor makes a change."""

    WEB = "web"
    REST = "rest"
    MCP = "mcp"
    CLI = "cli"
    WEBHOOK = "webhook"
    SYSTEM = "system"  # the server itself, such as a clean-up


class Actor(NamedTuple):
    """User, token and request behind a change. The audit log records it."""

    user: str = OPERATOR  # name of the user, or of the owner of the token
    token: str = ""  # label of the token; "" for a password, OIDC or the operator's token
    via: Via = Via.SYSTEM
    address: str = ""  # IP address of the client
    request_id: str = ""

    @property
    def name(self) -> str:
        """The user, with the token if there is one: `dev1/ci`."""
        return f"{self.user}/{self.token}" if self.token else self.user


SYSTEM_ACTOR = Actor("system")
