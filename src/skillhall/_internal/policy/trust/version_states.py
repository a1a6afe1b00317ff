"""States of a skill's versions on a server, and the rules for changing them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.access.roles import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class VersionState(StrEnum):
    """State of a version. Only approved versions can be served."""

    DRAFT = "draft"
    IN_REVIEW = "in-review"
    APPROVED = "approved"
    YANKED = "yanked"


class ReviewMode(StrEnum):
    """Who approves the versions of a server's skills."""

    OFF = "off"  # every version is approved when it is written
    ONE = "one"  # a reviewer, who may be the author
    TWO = "two"  # a reviewer who is not an author


class VersionVerb(StrEnum):
    """Operation on a version."""

    SUBMIT = "submit"
    RETURN = "return"  # to the author, with a comment
    APPROVE = "approve"
    YANK = "yank"
    USE = "use"  # make an approved version the current one


class Transition(NamedTuple):
    """Change of a version's state, and the action that it needs."""

    before: VersionState
    after: VersionState
    action: Action
    needs_comment: bool = False


TRANSITIONS: Mapping[VersionVerb, Transition] = {
    VersionVerb.SUBMIT: Transition(VersionState.DRAFT, VersionState.IN_REVIEW, Action.WRITE_SKILLS),
    VersionVerb.RETURN: Transition(
        VersionState.IN_REVIEW, VersionState.DRAFT, Action.REVIEW_SKILLS, needs_comment=True
    ),
    VersionVerb.APPROVE: Transition(
        VersionState.IN_REVIEW, VersionState.APPROVED, Action.REVIEW_SKILLS
    ),
    VersionVerb.YANK: Transition(
        VersionState.APPROVED, VersionState.YANKED, Action.REVIEW_SKILLS, needs_comment=True
    ),
    VersionVerb.USE: Transition(VersionState.APPROVED, VersionState.APPROVED, Action.REVIEW_SKILLS),
}


class Refusal(StrEnum):
    """Reason why a verb cannot be applied to a version."""

    WRONG_STATE = "wrong-state"
    COMMENT_MISSING = "comment-missing"
    NOT_SCANNED = "not-scanned"
    OWN_WORK = "own-work"


class ReviewFacts(NamedTuple):
    """Facts about a version and a request that decide whether a verb applies."""

    state: VersionState
    mode: ReviewMode
    is_author: bool = False  # whether the actor wrote a part of the version
    is_scanned: bool = True
    has_comment: bool = True


def find_refusal(verb: VersionVerb, facts: ReviewFacts) -> Refusal | None:
    """Return why a verb cannot be applied; None if it can."""
    transition = TRANSITIONS[verb]
    if facts.state is not transition.before:
        return Refusal.WRONG_STATE
    if transition.needs_comment and not facts.has_comment:
        return Refusal.COMMENT_MISSING
    if verb is not VersionVerb.APPROVE:
        return None
    if facts.mode is ReviewMode.TWO and facts.is_author:
        return Refusal.OWN_WORK
    return None if facts.is_scanned else Refusal.NOT_SCANNED


def initial_state(mode: ReviewMode) -> VersionState:
    """Return the state of a version that was just written."""
    return VersionState.APPROVED if mode is ReviewMode.OFF else VersionState.DRAFT


def choose_current(approved: Iterable[int]) -> int | None:
    """Return the version that replaces a yanked one: the newest approved one, or None."""
    return max(approved, default=None)
