"""Trust: whether a skill may reach a model, decided from facts, approvals and policies.

`decide` is pure. The facts about a skill and the records come as arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from skillhall._internal.policy.trust_action import (
    ASK_ABOUT_PROJECTS,
    LOAD_EVERYTHING,
    TrustAction,
    TrustPolicy,
)
from skillhall._internal.skill.approved_files import CHANGED_REASON

EVERYWHERE = "*"  # an approval for all projects


class Origin(StrEnum):
    """Where a skill was found."""

    OWN = "own"  # the user is writing it
    USER = "user"  # in a folder of the user or of the system
    NAMED = "named"  # in a folder that the user named
    PROJECT = "project"  # in the project, which a stranger may have written
    LINK = "link"  # behind a link that leads out of the searched folders


class TrustState(StrEnum):
    """What is known about the current files of a skill."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"  # another version was approved
    BLOCKED = "blocked"


class ApprovalDecision(StrEnum):
    """What a record says about a digest."""

    APPROVE = "approve"
    BLOCK = "block"
    FORGET = "forget"  # the records before it do not count


class PolicyLevel(StrEnum):
    """Who wrote a policy. A project's may come from a stranger."""

    MACHINE = "machine"
    USER = "user"
    PROJECT = "project"


class PolicyRules(NamedTuple):
    """The rules of one policy file; `None` keeps the action of the level below."""

    new: TrustAction | None = None
    changed: TrustAction | None = None
    denied: frozenset[str] = frozenset()  # digests
    allowed: frozenset[str] = frozenset()  # digests; only the machine's policy may allow


class Approved(NamedTuple):
    """The part of a record that decides."""

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
    policies: Mapping[PolicyLevel, PolicyRules] | None = None,
    revocations: Collection[str] = (),
) -> Decision:
    """Decide whether a model may get a skill; the first rule that matches decides.

    Approvals are in the order in which they were recorded, and the latest one counts.
    """
    policies = policies or {}
    latest, was_approved = _find_approval(facts, approvals)
    if rule := _find_block_rule(facts, latest, policies, revocations):
        return Decision(TrustAction.BLOCK, TrustState.BLOCKED, rule)
    machine = policies.get(PolicyLevel.MACHINE, PolicyRules())
    rule = ""
    if latest is ApprovalDecision.APPROVE:
        rule = "you approved it"
    elif facts.digest in machine.allowed:
        rule = "the policy of the machine allows it"
    elif facts.origin in (Origin.OWN, Origin.USER, Origin.NAMED):
        rule = _ORIGIN_RULES[facts.origin]
    if rule:
        return Decision(TrustAction.LOAD, TrustState.APPROVED, rule)
    state = TrustState.CHANGED if was_approved else TrustState.NEW
    return _decide_by_origin(facts, state, policies)


_ORIGIN_RULES = {
    Origin.OWN: "you are writing it",
    Origin.USER: "it is in your own folder",
    Origin.NAMED: "you named its folder",
    Origin.PROJECT: "it was found in the project",
    Origin.LINK: "a link leads out of the searched folders",
}
_STRICTNESS = {action: number for number, action in enumerate(TrustAction)}


def _find_block_rule(
    facts: TrustFacts,
    latest: ApprovalDecision | None,
    policies: Mapping[PolicyLevel, PolicyRules],
    revocations: Collection[str],
) -> str:
    """Return the rule that blocks the skill; "" if there is none."""
    if facts.digest in revocations:
        return "it is revoked"
    for level, policy in policies.items():
        if facts.digest in policy.denied:
            return f"the policy of the {level} denies it"
    return "you blocked it" if latest is ApprovalDecision.BLOCK else ""


def _decide_by_origin(
    facts: TrustFacts, state: TrustState, policies: Mapping[PolicyLevel, PolicyRules]
) -> Decision:
    kind = "changed" if state is TrustState.CHANGED else "new"
    # Without an approval, a link that leads out of the searched folders is never followed.
    defaults = ASK_ABOUT_PROJECTS if facts.origin is Origin.LINK else facts.defaults
    rules = {level: getattr(policy, kind) for level, policy in policies.items()}
    action = rules.get(PolicyLevel.USER) or getattr(defaults, kind)
    # The user may loosen the defaults. The others can only tighten: the machine bounds the user,
    # and a project may come from a stranger.
    bounds = [rules.get(PolicyLevel.MACHINE), rules.get(PolicyLevel.PROJECT)]
    action = max([action, *filter(None, bounds)], key=_STRICTNESS.__getitem__)
    if action is TrustAction.ASK and not facts.can_ask:
        action = TrustAction.HOLD
    rule = CHANGED_REASON if kind == "changed" else _ORIGIN_RULES[facts.origin]
    return Decision(action, state, rule)


def _find_approval(
    facts: TrustFacts, approvals: Iterable[Approved]
) -> tuple[ApprovalDecision | None, bool]:
    """Return the latest decision on the digest, and whether another one was approved."""
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
