"""Decisions about trust: every rule, and what holds for all combinations."""

from itertools import product

import pytest

from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.policy.trust_action import (
    ASK_ABOUT_PROJECTS,
    LOAD_EVERYTHING,
    TrustAction,
    TrustPolicy,
)
from skillhall._internal.policy.trust_decision import (
    EVERYWHERE,
    ApprovalDecision,
    Approved,
    Decision,
    Origin,
    PolicyLevel,
    PolicyRules,
    TrustFacts,
    TrustState,
    decide,
)

NEW, OLD, PROJECT = "sha256:new", "sha256:old", "/project"
ACTIONS = (None, *TrustAction)
STRICTNESS = {action: number for number, action in enumerate(TrustAction)}


def make_facts(
    origin: Origin = Origin.PROJECT,
    defaults: TrustPolicy = ASK_ABOUT_PROJECTS,
    *,
    can_ask: bool = False,
) -> TrustFacts:
    return TrustFacts(NEW, "pdf", origin, PROJECT, defaults, can_ask)


def approve(
    digest: str = NEW,
    where: str = PROJECT,
    decision: ApprovalDecision = ApprovalDecision.APPROVE,
    name: str = "pdf",
) -> Approved:
    return Approved(digest, name, where, decision)


BLOCK = approve(decision=ApprovalDecision.BLOCK)
FORGET = approve(decision=ApprovalDecision.FORGET)


@pytest.mark.parametrize(
    ("approvals", "state", "action"),
    [
        ((), TrustState.NEW, TrustAction.HOLD),
        ((approve(),), TrustState.APPROVED, TrustAction.LOAD),
        ((approve(where=EVERYWHERE),), TrustState.APPROVED, TrustAction.LOAD),
        ((approve(where="/other"),), TrustState.NEW, TrustAction.HOLD),
        ((approve(OLD),), TrustState.CHANGED, TrustAction.HOLD),
        ((approve(OLD, name="csv"),), TrustState.NEW, TrustAction.HOLD),
        ((approve(), BLOCK), TrustState.BLOCKED, TrustAction.BLOCK),
        ((BLOCK, approve()), TrustState.APPROVED, TrustAction.LOAD),
        ((approve(), FORGET), TrustState.NEW, TrustAction.HOLD),
        ((BLOCK, FORGET), TrustState.NEW, TrustAction.HOLD),
    ],
)
def test_latest_approval_of_the_digest_decides(
    approvals: tuple[Approved, ...], state: TrustState, action: TrustAction
) -> None:
    decision = decide(make_facts(), approvals)
    assert (decision.state, decision.action) == (state, action)


@pytest.mark.parametrize("origin", [Origin.OWN, Origin.USER, Origin.NAMED])
def test_skills_of_the_user_load_unless_they_are_blocked(origin: Origin) -> None:
    assert decide(make_facts(origin)).is_cleared
    assert decide(make_facts(origin), [BLOCK]).rule == "you blocked it"
    assert not decide(make_facts(origin), revocations=[NEW]).is_cleared


def test_link_out_of_the_roots_needs_an_approval_under_every_profile() -> None:
    facts = make_facts(Origin.LINK, LOAD_EVERYTHING)
    assert not decide(facts).is_cleared
    assert decide(facts, [approve()]).is_cleared


def test_question_becomes_hold_without_a_terminal() -> None:
    assert decide(make_facts(can_ask=True)).action is TrustAction.ASK
    assert decide(make_facts()).action is TrustAction.HOLD


def test_only_the_lenient_profile_asks() -> None:
    asking = [name for name, profile in PROFILES.items() if profile.trust_policy != LOAD_EVERYTHING]
    assert asking == ["lenient"]


def test_only_the_policy_of_the_machine_may_allow() -> None:
    allow = PolicyRules(allowed=frozenset({NEW}))
    cleared = [
        level for level in PolicyLevel if decide(make_facts(), (), {level: allow}).is_cleared
    ]
    assert cleared == [PolicyLevel.MACHINE]


def test_user_may_loosen_the_defaults_within_the_bounds_of_the_machine() -> None:
    user, machine = PolicyRules(new=TrustAction.LOAD), PolicyRules(new=TrustAction.WARN)
    policies = {PolicyLevel.USER: user}
    assert decide(make_facts(), (), policies).action is TrustAction.LOAD
    policies = {PolicyLevel.USER: user, PolicyLevel.MACHINE: machine}
    assert decide(make_facts(), (), policies).action is TrustAction.WARN


def all_rules(*, allowing: bool) -> list[PolicyRules]:
    sets = (frozenset[str](), frozenset({NEW}))
    return [
        PolicyRules(action, action, denied, allowed)
        for action, denied, allowed in product(ACTIONS, sets, sets if allowing else sets[:1])
    ]


def test_properties_hold_for_all_combinations() -> None:
    records = ((), (approve(),), (approve(OLD),), (BLOCK,), (approve(), FORGET))
    profiles = (LOAD_EVERYTHING, ASK_ABOUT_PROJECTS)
    machines, users, count = all_rules(allowing=True), all_rules(allowing=False), 0
    for origin, defaults, can_ask, approvals in product(Origin, profiles, (False, True), records):
        facts = make_facts(origin, defaults, can_ask=can_ask)
        for machine, user in product(machines, users):
            policies = {PolicyLevel.MACHINE: machine, PolicyLevel.USER: user}
            without = decide(facts, approvals, policies)
            assert can_ask or without.action is not TrustAction.ASK
            assert not decide(facts, approvals, policies, {NEW}).is_cleared
            count += check_project_policies(facts, approvals, policies, without)
    assert count > 80_000


def check_project_policies(
    facts: TrustFacts,
    approvals: tuple[Approved, ...],
    policies: dict[PolicyLevel, PolicyRules],
    without: Decision,
) -> int:
    """Check that no policy of a project gives a looser action."""
    loosest = (PolicyRules(TrustAction.LOAD, TrustAction.LOAD, allowed=frozenset({NEW})),)
    strict = (PolicyRules(TrustAction.HOLD, TrustAction.HOLD), PolicyRules(denied=frozenset({NEW})))
    for project in (*loosest, *strict):
        decision = decide(facts, approvals, {**policies, PolicyLevel.PROJECT: project})
        assert STRICTNESS[decision.action] >= STRICTNESS[without.action]
    return len(loosest) + len(strict)
