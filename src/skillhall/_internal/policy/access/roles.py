"""Roles of users, and the actions that roles and scopes allow on a server."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from skillhall._internal.policy.access.access_scopes import AccessScope

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Action(StrEnum):
    """Action that a request performs. Every route, MCP tool and page names one."""

    READ = "read"  # approved skills, prompts and sessions
    MANAGE_OWN_ACCOUNT = "manage-own-account"  # own password, tokens and sign-ins
    WRITE_SKILLS = "write-skills"  # create, edit, import and delete; submit for review
    WRITE_SESSIONS = "write-sessions"  # sessions, blocks, templates and snapshots
    CHAT = "chat"  # use the model of the server
    REFRESH = "refresh"  # fetch the configured repository again, and upload prompts
    REVIEW_SKILLS = "review-skills"  # approve, return, yank and roll back versions
    MANAGE_USERS = "manage-users"
    MANAGE_TOKENS = "manage-tokens"  # of all users
    MANAGE_SOURCES = "manage-sources"  # follow and remove repositories
    USE_GIT_TOKENS = "use-git-tokens"  # name other repositories that get the server's tokens
    READ_AUDIT = "read-audit"
    READ_INVENTORY = "read-inventory"
    READ_STATUS = "read-status"  # health, usage and settings of the server
    MANAGE_SETTINGS = "manage-settings"  # those that can be changed on a running server
    SEND_INVENTORY = "send-inventory"


class Role(StrEnum):
    """Role of a user. Each role includes the ones before it."""

    READER = "reader"
    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMINISTRATOR = "administrator"


_READER = frozenset({Action.READ, Action.MANAGE_OWN_ACCOUNT, Action.SEND_INVENTORY})
_AUTHOR = _READER | {
    Action.WRITE_SKILLS,
    Action.WRITE_SESSIONS,
    Action.CHAT,
    Action.REFRESH,
}
_REVIEWER = _AUTHOR | {Action.REVIEW_SKILLS}
ROLES: Mapping[Role, frozenset[Action]] = {
    Role.READER: _READER,
    Role.AUTHOR: _AUTHOR,
    Role.REVIEWER: _REVIEWER,
    Role.ADMINISTRATOR: frozenset(Action),
}
# The scope that a token needs for an action; None if every token is enough.
ACTION_SCOPES: Mapping[Action, AccessScope | None] = {
    Action.READ: AccessScope.READ,
    Action.MANAGE_OWN_ACCOUNT: None,
    Action.WRITE_SKILLS: AccessScope.WRITE,
    Action.WRITE_SESSIONS: AccessScope.WRITE,
    Action.CHAT: AccessScope.WRITE,
    Action.REFRESH: AccessScope.WRITE,
    Action.REVIEW_SKILLS: AccessScope.REVIEW,
    Action.MANAGE_USERS: AccessScope.ADMIN,
    Action.MANAGE_TOKENS: AccessScope.ADMIN,
    Action.MANAGE_SOURCES: AccessScope.ADMIN,
    Action.USE_GIT_TOKENS: AccessScope.ADMIN,
    Action.READ_AUDIT: AccessScope.AUDIT,
    Action.READ_INVENTORY: AccessScope.ADMIN,
    Action.READ_STATUS: AccessScope.ADMIN,
    Action.MANAGE_SETTINGS: AccessScope.ADMIN,
    Action.SEND_INVENTORY: AccessScope.REPORT,
}


def is_allowed(action: Action, role: Role, scopes: Collection[str] | None = None) -> bool:
    """Whether a role allows an action.

    The `scopes` of a token, if any, must allow it, too.
    """
    if action not in ROLES[role]:
        return False
    scope = ACTION_SCOPES[action]
    return scopes is None or scope is None or scope in scopes
