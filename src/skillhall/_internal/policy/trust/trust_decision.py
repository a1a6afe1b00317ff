"""Trust decisions about skills, from facts, approvals, policies and revocations.

`decide` is pure. The facts about a skill and the records come as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.trust.trust_action import (
    ASK_ABOUT_PROJECTS,
    LOAD_EVERYTHING,
    TrustAction,
    TrustPolicy,
)
from skillhall._internal.skill.approved_files import CHANGED_REASON

if TYPE_CHECKING:  # not imported at run time: most machines have no policy files
    from skillhall._internal.policy.trust.policies import Policies, SkillEvidence

EVERYWHERE = "*"  # an approval for all projects


class Origin(StrEnum):
    """Where a skill was found."""

    OWN = "own"  # the user is writing it
    USER = "user"  # in a folder of the user or of the system
    NAMED = "named"  # in a folder that the user named
    PROJECT = "project"  # in the project, which a stranger may have written
    SERVER = "server"  # of a server, whose authors and reviewers decide
    LINK = "link"  # behind a link that leads out of the searched folders


class TrustState(StrEnum):
    """Whether the current files of a skill are approved."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"  # another version was approved
    BLOCKED = "blocked"


class ApprovalDecision(StrEnum):
    """Decision about a digest in an approval record."""

    APPROVE = "approve"
    BLOCK = "block"
    DECLINE = "decline"  # the user answered "no": hold it without asking again
    FORGET = "forget"  # the records before it do not count


class Approved(NamedTuple):
    """The part of an approval record that `decide` needs."""

    digest: str
    name: str
    where: str  # a project, or `EVERYWHERE`
    decision: ApprovalDecision


class TrustFacts(NamedTuple):
    """The facts about a skill that decide whether a model gets it."""

    digest: str
    name: str
    origin: Origin
    project: str
    defaults: TrustPolicy = LOAD_EVERYTHING  # of the profile
    can_ask: bool = False  # whether there is a terminal, outside of CI
    evidence: SkillEvidence | None = None  # for policies


class Decision(NamedTuple):
    """The action for a skill, its state, and the rule that decided."""

    action: TrustAction
    state: TrustState
    rule: str

    @property
    def is_cleared(self) -> bool:
        """Whether a model may get the skill."""
        return self.action in (TrustAction.LOAD, TrustAction.WARN)


def decide(
    facts: TrustFacts,
    approvals: Iterable[Approved] = (),
    policies: Policies | None = None,
    revocations: Mapping[str, str] | None = None,
) -> Decision:
    """Decide whether a model may get a skill; the first rule that matches decides.

    Approvals are in the order in which they were recorded, and the latest one counts.
    Revocations are reasons by digest.
    """
    latest, was_approved = _find_approval(facts, approvals)
    if rule := _find_block_rule(facts, latest, policies, revocations):
        return Decision(TrustAction.BLOCK, TrustState.BLOCKED, rule)
    rule = ""
    if latest is ApprovalDecision.APPROVE:
        rule = "you approved it"
    elif facts.origin in (Origin.OWN, Origin.USER, Origin.NAMED, Origin.SERVER):
        rule = _ORIGIN_RULES[facts.origin]
    elif policies is not None:
        rule = policies.find_permission(facts)
    if rule:
        return Decision(TrustAction.LOAD, TrustState.APPROVED, rule)
    state = TrustState.CHANGED if was_approved else TrustState.NEW
    decision = _decide_by_origin(facts, state, policies)
    if latest is ApprovalDecision.DECLINE and decision.action is TrustAction.ASK:
        decision = decision._replace(action=TrustAction.HOLD)
    return decision


_ORIGIN_RULES = {
    Origin.OWN: "you are writing it",
    Origin.USER: "it is in your own folder",
    Origin.NAMED: "you named its folder",
    Origin.PROJECT: "it was found in the project",
    Origin.SERVER: "this server serves it",
    Origin.LINK: "a link leads out of the searched folders",
}


def _find_block_rule(
    facts: TrustFacts,
    latest: ApprovalDecision | None,
    policies: Policies | None,
    revocations: Mapping[str, str] | None,
) -> str:
    """Return the rule that blocks the skill; "" if there is none."""
    if revocations and facts.digest in revocations:
        return f"it is revoked: {revocations[facts.digest]}"
    if latest is ApprovalDecision.BLOCK:
        return "you blocked it"
    return "" if policies is None else policies.find_block_rule(facts)


def _decide_by_origin(facts: TrustFacts, state: TrustState, policies: Policies | None) -> Decision:
    is_changed, is_link = state is TrustState.CHANGED, facts.origin is Origin.LINK
    # Without an approval, a link that leads out of the searched folders is never followed.
    defaults = ASK_ABOUT_PROJECTS if is_link else facts.defaults
    action = defaults.changed if is_changed else defaults.new
    rule = CHANGED_REASON if is_changed else _ORIGIN_RULES[facts.origin]
    if policies is not None:
        kind = "changed" if is_changed else "project"
        action, entry = policies.find_action(kind, action, can_loosen=not is_link)
        rule = f"{rule}; {entry}" if entry else rule
    if action is TrustAction.BLOCK:
        state = TrustState.BLOCKED
    if action is TrustAction.ASK and not facts.can_ask:
        action = TrustAction.HOLD
    return Decision(action, state, rule)


def _find_approval(
    facts: TrustFacts, approvals: Iterable[Approved]
) -> tuple[ApprovalDecision | None, bool]:
    """Return the latest decision on a digest, and whether another one was approved."""
    latest: ApprovalDecision | None = None
    others: dict[str, bool] = {}
    for approval in approvals:
        if approval.where not in (facts.project, EVERYWHERE):
            continue
        if approval.digest == facts.digest:
            is_forgotten = approval.decision is ApprovalDecision.FORGET
            latest = None if is_forgotten else approval.decision
        elif approval.name == facts.name:
            others[approval.digest] = approval.decision is ApprovalDecision.APPROVE
    return latest, any(others.values())
