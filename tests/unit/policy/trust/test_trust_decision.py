"""Decisions about trust: every rule, and what holds for all combinations."""

from itertools import product

import pytest

from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.policy.trust.policies import (
    KnownEvidence,
    KnownSigner,
    LevelPolicy,
    Policies,
    PolicyLevel,
    SignatureCheck,
)
from skillhall._internal.policy.trust.policy_file import (
    Denial,
    PolicyFile,
    Requirement,
    SignerEntry,
)
from skillhall._internal.policy.trust.trust_action import (
    ASK_ABOUT_PROJECTS,
    LOAD_EVERYTHING,
    STRICTNESS,
    TrustAction,
    TrustPolicy,
)
from skillhall._internal.policy.trust.trust_decision import (
    EVERYWHERE,
    ApprovalDecision,
    Approved,
    Decision,
    Origin,
    TrustFacts,
    TrustState,
    decide,
)
from skillhall._internal.skill.risks.levels import RiskLevel

NEW, OLD, PROJECT = "sha256:new", "sha256:old", "/project"
MACHINE, USER, OF_PROJECT = PolicyLevel
UNSIGNED = KnownEvidence("github.com/acme/skills", RiskLevel.L0)


def make_facts(
    origin: Origin = Origin.PROJECT,
    defaults: TrustPolicy = ASK_ABOUT_PROJECTS,
    *,
    can_ask: bool = False,
    evidence: KnownEvidence = UNSIGNED,
) -> TrustFacts:
    return TrustFacts(NEW, "pdf", origin, PROJECT, defaults, can_ask, evidence)


def make_policies(files: dict[PolicyLevel, PolicyFile]) -> Policies:
    return Policies(tuple(LevelPolicy(level, f"{level}.toml", files[level]) for level in files))


def sign_by(level: PolicyLevel, risk: RiskLevel = RiskLevel.L0) -> KnownEvidence:
    """Evidence of a skill that the signer `ci` of a policy signed."""
    return KnownEvidence(
        UNSIGNED.source, risk, SignatureCheck(frozenset({KnownSigner(level, "ci")}), "")
    )


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
    decision = decide(make_facts(origin), revocations={NEW: "it steals keys"})
    assert decision.rule == "it is revoked: it steals keys"
    assert not decision.is_cleared


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
    allow = PolicyFile(allowed=frozenset({NEW}))
    decisions = {one: decide(make_facts(), (), make_policies({one: allow})) for one in PolicyLevel}
    assert [level for level, one in decisions.items() if one.is_cleared] == [MACHINE]
    assert decisions[MACHINE].rule == "allow of machine.toml"


def test_user_may_loosen_the_defaults_within_the_bounds_of_the_machine() -> None:
    user, machine = PolicyFile(TrustAction.LOAD), PolicyFile(TrustAction.WARN)
    decision = decide(make_facts(), (), make_policies({USER: user}))
    assert decision.action is TrustAction.LOAD
    assert decision.rule == "it was found in the project; trust.project of user.toml"
    decision = decide(make_facts(), (), make_policies({MACHINE: machine, USER: user}))
    assert decision.action is TrustAction.WARN
    assert decision.rule.endswith("trust.project of machine.toml")


def test_link_out_of_the_roots_is_not_loosened_by_the_user() -> None:
    policies = make_policies({USER: PolicyFile(TrustAction.LOAD, TrustAction.LOAD)})
    assert not decide(make_facts(Origin.LINK), (), policies).is_cleared


@pytest.mark.parametrize(
    ("denial", "is_denied"),
    [
        (Denial(digest=NEW), True),
        (Denial(digest=OLD), False),
        (Denial(name="PDF"), True),
        (Denial(name="p*"), True),
        (Denial(name="p"), False),
        (Denial(name="p.f"), False),
        (Denial(name="*"), True),
        (Denial(name="*d*"), True),
        (Denial(name="*df"), True),
        (Denial(name="p*d*f"), True),
        (Denial(name="p*f*d"), False),
        (Denial(name="x*"), False),
        (Denial(name="p*x*f"), False),
        (Denial(name="pd*df"), False),
        (Denial(name="*x"), False),
        (Denial(source="github.com/ACME/*"), True),
        (Denial(source="github.com/acme"), False),
        (Denial(risk=RiskLevel.L2), True),
        (Denial(risk=RiskLevel.L3), False),
        (Denial(name="pdf", risk=RiskLevel.L3), False),
        (Denial(name="pdf", unless_signers=("ci",)), False),
        (Denial(name="pdf", unless_signers=("other",)), True),
    ],
)
def test_denial_needs_all_of_its_fields_to_match(denial: Denial, is_denied: bool) -> None:
    facts = make_facts(evidence=sign_by(MACHINE, RiskLevel.L2))
    decision = decide(facts, [approve()], make_policies({MACHINE: PolicyFile(denials=(denial,))}))
    assert decision.is_cleared is not is_denied
    assert not is_denied or decision.rule == "deny[0] of machine.toml"


def test_requirement_is_met_only_by_signers_that_its_author_knows() -> None:
    policy = PolicyFile(requirements=(Requirement("github.com/acme/*", ("ci",)),))
    met = {
        (rule, signer)
        for rule, signer in product(PolicyLevel, PolicyLevel)
        if decide(
            make_facts(evidence=sign_by(signer)), [approve()], make_policies({rule: policy})
        ).is_cleared
    }
    assert met == {
        (MACHINE, MACHINE),
        (USER, MACHINE),
        (USER, USER),
        (OF_PROJECT, MACHINE),
        (OF_PROJECT, USER),
        (OF_PROJECT, OF_PROJECT),
    }
    decision = decide(make_facts(), [approve()], make_policies({USER: policy}))
    assert decision.rule == ("require[0] of user.toml: it is not signed; it must be signed by ci")


def test_requirement_for_another_source_changes_nothing() -> None:
    policy = PolicyFile(requirements=(Requirement("gitlab.com/*", ("ci",)),))
    assert decide(make_facts(), [approve()], make_policies({MACHINE: policy})).is_cleared


def test_signer_approves_for_the_machine_and_the_user_only() -> None:
    policy = PolicyFile(signers=(SignerEntry("ci", approves=True, key="ci.pub"),))
    cleared = [
        level
        for level in PolicyLevel
        if decide(
            make_facts(evidence=sign_by(level)), (), make_policies({level: policy})
        ).is_cleared
    ]
    assert cleared == [MACHINE, USER]
    unapproving = PolicyFile(signers=(SignerEntry("ci", key="ci.pub"),))
    facts = make_facts(evidence=sign_by(MACHINE))
    assert not decide(facts, (), make_policies({MACHINE: unapproving})).is_cleared


def test_evidence_is_read_only_if_a_rule_asks_for_it() -> None:
    facts = make_facts()._replace(evidence=NoEvidence())
    policies = make_policies(
        {
            MACHINE: PolicyFile(
                TrustAction.HOLD,
                denials=(Denial(digest=OLD, risk=RiskLevel.L0), Denial(name="csv", source="*")),
                signers=(SignerEntry("ci", key="ci.pub"),),
            )
        }
    )
    assert decide(facts, (), policies).action is TrustAction.HOLD


class NoEvidence:
    """Evidence that must not be read."""

    @property
    def source(self) -> str:
        raise AssertionError

    @property
    def risk(self) -> RiskLevel:
        raise AssertionError

    @property
    def signature(self) -> SignatureCheck:
        raise AssertionError


def test_ineffective_entries_give_warnings() -> None:
    loose = PolicyFile(
        TrustAction.LOAD,
        TrustAction.HOLD,
        allowed=frozenset({NEW}),
        signers=(SignerEntry("ci", approves=True, key="ci.pub"),),
    )
    files = {MACHINE: loose, USER: loose._replace(project=None), OF_PROJECT: loose}
    warnings = make_policies(files).find_warnings(ASK_ABOUT_PROJECTS)
    assert [warning.partition(" has no effect")[0] for warning in warnings] == [
        "user.toml: 'allow'",
        "project.toml: 'allow'",
        "project.toml: 'approves' of the signer 'ci'",
        "project.toml: 'trust.project'",
    ]


DENIED = PolicyFile(denials=(Denial(digest=NEW),))
RULES = (
    *(PolicyFile(one, one) for one in (None, TrustAction.LOAD, TrustAction.ASK, TrustAction.BLOCK)),
    DENIED,
    PolicyFile(denials=(Denial(risk=RiskLevel.L2, unless_signers=("ci",)),)),
    PolicyFile(requirements=(Requirement("github.com/*", ("ci",)),)),
    PolicyFile(allowed=frozenset({NEW})),
    PolicyFile(TrustAction.HOLD, signers=(SignerEntry("ci", approves=True, key="ci.pub"),)),
)
EVIDENCE = (UNSIGNED, KnownEvidence(UNSIGNED.source), *map(sign_by, PolicyLevel))
RECORDS = ((), (approve(),), (approve(OLD),), (BLOCK,), (approve(), FORGET))


@pytest.mark.parametrize("defaults", [LOAD_EVERYTHING, ASK_ABOUT_PROJECTS])
@pytest.mark.parametrize("can_ask", [False, True])
def test_properties_hold_for_all_combinations(defaults: TrustPolicy, can_ask: bool) -> None:
    count = 0
    for origin, approvals, evidence in product(Origin, RECORDS, EVIDENCE):
        facts = make_facts(origin, defaults, can_ask=can_ask, evidence=evidence)
        for machine, user in product(RULES, RULES):
            files = {MACHINE: machine, USER: user}
            without = decide(facts, approvals, make_policies(files))
            assert can_ask or without.action is not TrustAction.ASK
            assert not (DENIED in (machine, user) and without.is_cleared)
            assert not decide(facts, approvals, make_policies(files), {NEW: ""}).is_cleared
            count += check_project_policies(facts, approvals, files, without)
    assert count > 40_000


def check_project_policies(
    facts: TrustFacts,
    approvals: tuple[Approved, ...],
    files: dict[PolicyLevel, PolicyFile],
    without: Decision,
) -> int:
    """Check that no policy of a project gives a looser action."""
    loosest = PolicyFile(
        TrustAction.LOAD,
        TrustAction.LOAD,
        allowed=frozenset({NEW}),
        signers=(SignerEntry("ci", approves=True, key="ci.pub"),),
    )
    projects = (loosest, PolicyFile(TrustAction.HOLD, TrustAction.HOLD), DENIED, *RULES[5:7])
    for project in projects:
        decision = decide(facts, approvals, make_policies({**files, OF_PROJECT: project}))
        assert STRICTNESS[decision.action] >= STRICTNESS[without.action]
        assert project is not DENIED or not decision.is_cleared
        assert facts.can_ask or decision.action is not TrustAction.ASK
    return len(projects)
