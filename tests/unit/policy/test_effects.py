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


def make_finding(code: Code) -> Finding:
    return Finding(code, "message")


def test_other_codes_have_the_default_effect() -> None:
    assert LoadPolicy.create(Effect.WARN).get_effect(Code.NAME_TOO_LONG) is Effect.WARN
    assert LoadPolicy.create(Effect.REJECT).get_effect(Code.NAME_TOO_LONG) is Effect.REJECT


@pytest.mark.parametrize("default", list(Effect))
def test_groups_have_their_effect_under_any_default(default: Effect) -> None:
    policy = LoadPolicy.create(default)
    assert {policy.get_effect(code) for code in UNREADABLE_CODES} == {Effect.REJECT}
    assert {policy.get_effect(code) for code in WARNED_BY_DEFAULT} == {Effect.WARN}
    assert {policy.get_effect(code) for code in ACCEPTED_BY_DEFAULT} == {Effect.ACCEPT}


def test_stricter_set_wins() -> None:
    code = {Code.BOM}
    assert (
        LoadPolicy.create(Effect.ACCEPT, accept=code, warn=code).get_effect(Code.BOM) is Effect.WARN
    )
    policy = LoadPolicy.create(Effect.ACCEPT, reject=code, warn=code, accept=code)
    assert policy.get_effect(Code.BOM) is Effect.REJECT


def test_no_code_is_in_two_groups() -> None:
    groups = [
        UNREADABLE_CODES,
        WARNED_BY_DEFAULT,
        ACCEPTED_BY_DEFAULT,
        NAME_FORMAT_CODES,
        MISSING_NAME_CODES,
        frozenset(TIERS),
    ]
    assert sum(map(len, groups)) == len(frozenset[Code]().union(*groups))


def test_judge_returns_every_finding_with_its_effect() -> None:
    policy = LoadPolicy.create(Effect.WARN, reject={Code.NAME_MISSING})
    findings = [
        make_finding(Code.NAME_MISSING),
        make_finding(Code.BOM),
        make_finding(Code.NAME_UPPERCASE),
    ]
    assert policy.judge(findings) == (
        JudgedFinding(findings[0], Effect.REJECT),
        JudgedFinding(findings[1], Effect.ACCEPT),
        JudgedFinding(findings[2], Effect.WARN),
    )


def test_one_rejected_finding_rejects_the_skill() -> None:
    policy = LoadPolicy.create(Effect.WARN, reject={Code.NAME_MISSING})
    assert policy.accepts([])
    assert policy.accepts([make_finding(Code.BOM), make_finding(Code.NAME_UPPERCASE)])
    assert not policy.accepts([make_finding(Code.BOM), make_finding(Code.NAME_MISSING)])


def test_accepted_codes_include_info_risks() -> None:
    facts = {code for code, tier in TIERS.items() if tier is Tier.INFO}
    assert LoadPolicy.create(Effect.WARN).accepted_codes == ACCEPTED_BY_DEFAULT | facts
    assert LoadPolicy.create(Effect.REJECT, warn=ACCEPTED_BY_DEFAULT).accepted_codes == facts


@pytest.mark.parametrize("default", list(Effect))
def test_risks_never_reject_under_any_policy(default: Effect) -> None:
    policy = LoadPolicy.create(default, reject=TIERS)
    assert policy.accepts(map(make_finding, TIERS))
    for code, tier in TIERS.items():
        assert policy.get_effect(code) is (Effect.ACCEPT if tier is Tier.INFO else Effect.WARN)
