"""Tests for roles and actions."""

from itertools import pairwise

import pytest

from skillhall._internal.policy.access.access_scopes import DEFAULT_SCOPES, AccessScope
from skillhall._internal.policy.access.roles import ACTION_SCOPES, ROLES, Action, Role, is_allowed


def test_every_role_includes_the_ones_before_it() -> None:
    assert all(ROLES[lower] < ROLES[higher] for lower, higher in pairwise(Role))


def test_administrators_may_do_everything() -> None:
    assert all(is_allowed(action, Role.ADMINISTRATOR) for action in Action)


def test_every_action_has_a_scope() -> None:
    assert set(ACTION_SCOPES) == set(Action)


@pytest.mark.parametrize("action", [Action.WRITE_SKILLS, Action.REVIEW_SKILLS, Action.READ_AUDIT])
def test_a_read_token_of_an_administrator_changes_nothing(action: Action) -> None:
    assert is_allowed(Action.READ, Role.ADMINISTRATOR, (AccessScope.READ,))
    assert not is_allowed(action, Role.ADMINISTRATOR, (AccessScope.READ,))


def test_scopes_of_a_token_never_exceed_the_role_of_its_owner() -> None:
    assert is_allowed(Action.WRITE_SKILLS, Role.AUTHOR, DEFAULT_SCOPES)
    assert not is_allowed(Action.MANAGE_USERS, Role.AUTHOR, DEFAULT_SCOPES)


def test_every_token_may_manage_its_own_account() -> None:
    assert is_allowed(Action.MANAGE_OWN_ACCOUNT, Role.READER, ())
