import pytest

from skillhall._internal.policy.effects import (
    ACCEPTED_BY_DEFAULT,
    MISSING_NAME_CODES,
    NAME_FORMAT_CODES,
    UNREADABLE_CODES,
    WARNED_BY_DEFAULT,
    Effect,
    JudgedFinding,
    LoadPolicy,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.risks.tiers import TIERS, Tier


def finding(code: Code) -> Finding:
    return Finding(code, "a finding")


def test_a_code_that_is_not_named_has_the_effect_of_the_rest() -> None:
    assert LoadPolicy.create(Effect.WARN).get_effect(Code.NAME_TOO_LONG) is Effect.WARN
    assert LoadPolicy.create(Effect.REJECT).get_effect(Code.NAME_TOO_LONG) is Effect.REJECT


@pytest.mark.parametrize("otherwise", list(Effect))
def test_groups_have_their_effect_whatever_the_rest_has(otherwise: Effect) -> None:
    policy = LoadPolicy.create(otherwise)
    assert {policy.get_effect(code) for code in UNREADABLE_CODES} == {Effect.REJECT}
    assert {policy.get_effect(code) for code in WARNED_BY_DEFAULT} == {Effect.WARN}
    assert {policy.get_effect(code) for code in ACCEPTED_BY_DEFAULT} == {Effect.ACCEPT}


def test_a_set_named_later_wins() -> None:
    code = {Code.BOM}
    assert (
        LoadPolicy.create(Effect.ACCEPT, accept=code, warn=code).get_effect(Code.BOM) is Effect.WARN
    )
    policy = LoadPolicy.create(Effect.ACCEPT, reject=code, warn=code, accept=code)
    assert policy.get_effect(Code.BOM) is Effect.REJECT


def test_no_code_belongs_to_two_groups() -> None:
    groups = [
        UNREADABLE_CODES,
        WARNED_BY_DEFAULT,
        ACCEPTED_BY_DEFAULT,
        NAME_FORMAT_CODES,
        MISSING_NAME_CODES,
        frozenset(TIERS),
    ]
    assert sum(map(len, groups)) == len(frozenset[Code]().union(*groups))


def test_judging_keeps_every_finding_with_its_effect() -> None:
    policy = LoadPolicy.create(Effect.WARN, reject={Code.NAME_MISSING})
    findings = [finding(Code.NAME_MISSING), finding(Code.BOM), finding(Code.NAME_UPPERCASE)]
    assert policy.judge(findings) == (
        JudgedFinding(findings[0], Effect.REJECT),
        JudgedFinding(findings[1], Effect.ACCEPT),
        JudgedFinding(findings[2], Effect.WARN),
    )


def test_one_rejected_finding_keeps_a_skill_out() -> None:
    policy = LoadPolicy.create(Effect.WARN, reject={Code.NAME_MISSING})
    assert policy.accepts([])
    assert policy.accepts([finding(Code.BOM), finding(Code.NAME_UPPERCASE)])
    assert not policy.accepts([finding(Code.BOM), finding(Code.NAME_MISSING)])


def test_quiet_codes_are_those_that_need_no_mention() -> None:
    facts = {code for code, tier in TIERS.items() if tier is Tier.INFO}
    assert LoadPolicy.create(Effect.WARN).accepted_codes == ACCEPTED_BY_DEFAULT | facts
    assert LoadPolicy.create(Effect.REJECT, warn=ACCEPTED_BY_DEFAULT).accepted_codes == facts


@pytest.mark.parametrize("otherwise", list(Effect))
def test_what_the_scan_finds_never_rejects_whatever_a_policy_names(otherwise: Effect) -> None:
    policy = LoadPolicy.create(otherwise, reject=TIERS)
    assert policy.accepts(map(finding, TIERS))
    for code, tier in TIERS.items():
        assert policy.get_effect(code) is (Effect.ACCEPT if tier is Tier.INFO else Effect.WARN)
