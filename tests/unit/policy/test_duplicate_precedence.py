from dataclasses import dataclass

import pytest

from skillhall._internal.policy.duplicate_precedence import (
    DuplicatePolicy,
    Identity,
    PrecedencePolicy,
    resolve_duplicates,
)
from skillhall._internal.skill.finding import Code

PAIRS = [("a", 0), ("b", 0), ("a", 0), ("a", 1), ("a", 1), ("b", 2), ("c", 2)]
KEEP_ALL_POLICY = PrecedencePolicy(
    in_root=DuplicatePolicy.KEEP_ALL, across_roots=DuplicatePolicy.KEEP_ALL
)


@dataclass(frozen=True)
class Skill:
    name: str
    root_number: int = 0
    id: str = ""
    is_flat: bool = False
    location: str = "/somewhere/SKILL.md"


def test_unique_names_are_all_used_in_order() -> None:
    skills = [Skill("b"), Skill("a"), Skill("c", 1)]
    assert resolve_duplicates(skills, PrecedencePolicy()) == (skills, [])


def test_first_duplicate_wins_and_the_other_is_reported() -> None:
    first, second = Skill("a", location="/1"), Skill("a", 1, location="/2")
    policy = PrecedencePolicy()
    used, [duplicate] = resolve_duplicates([first, second], policy)
    assert used == [first]
    assert (duplicate.skill, duplicate.winner, duplicate.is_shadowed) == (second, first, True)
    finding = policy.build_finding(duplicate)
    assert (finding.code, finding.path, finding.skill) == (Code.SHADOWED, "/2", "a")
    assert finding.message == "'a' is shadowed by /1 (the earlier root wins)"


@pytest.mark.parametrize(
    ("winner", "skill", "rule"),
    [
        (Skill("a"), Skill("a", 1), "the earlier root wins"),
        (Skill("a", is_flat=True), Skill("a"), "a flat file wins over a folder"),
        (Skill("a", location="/1"), Skill("a"), "the first in name and path order wins"),
        (
            Skill("a", is_flat=True),
            Skill("a", is_flat=True, location="/2"),
            "the first in name and path order wins",
        ),
    ],
)
def test_shadowed_skill_has_the_rule(winner: Skill, skill: Skill, rule: str) -> None:
    policy = PrecedencePolicy()
    _, [duplicate] = resolve_duplicates([winner, skill], policy)
    assert duplicate.rule == rule
    assert rule in policy.build_finding(duplicate).message


def test_keep_all_uses_every_duplicate() -> None:
    skills = [Skill("a", location="/1"), Skill("a", location="/2"), Skill("a", 1, location="/3")]
    used, duplicates = resolve_duplicates(skills, KEEP_ALL_POLICY)
    assert used == skills
    assert not any(duplicate.is_shadowed for duplicate in duplicates)
    findings = [*map(KEEP_ALL_POLICY.build_finding, duplicates)]
    assert [(finding.code, finding.path) for finding in findings] == [
        (Code.SAME_NAME, "/2"),
        (Code.SAME_NAME, "/3"),
    ]
    assert findings[0].message == "'a' is also at /1; both are loaded"


def test_rules_in_root_and_across_roots_are_independent() -> None:
    policy = PrecedencePolicy(across_roots=DuplicatePolicy.KEEP_ALL)
    first, same_root, other_root = Skill("a"), Skill("a", location="/2"), Skill("a", 1)
    used, duplicates = resolve_duplicates([first, same_root, other_root], policy)
    assert used == [first, other_root]
    assert [loser.skill for loser in duplicates if loser.is_shadowed] == [same_root]
    assert [loser.skill for loser in duplicates] == [same_root, other_root]


def test_identity_may_be_the_id_instead_of_the_name() -> None:
    policy = PrecedencePolicy(identity=Identity.ID)
    first, same_name, same_id = Skill("a", id="1"), Skill("a", id="2"), Skill("b", id="1")
    used, duplicates = resolve_duplicates([first, same_name, same_id], policy)
    assert used == [first, same_name]
    assert [loser.skill for loser in duplicates] == [same_id]


@pytest.mark.parametrize("in_root", list(DuplicatePolicy))
@pytest.mark.parametrize("across_roots", list(DuplicatePolicy))
def test_resolving_duplicates_is_idempotent(
    in_root: DuplicatePolicy, across_roots: DuplicatePolicy
) -> None:
    policy = PrecedencePolicy(in_root=in_root, across_roots=across_roots)
    skills = [Skill(name, root, location=f"/{n}") for n, (name, root) in enumerate(PAIRS)]
    used, _ = resolve_duplicates(skills, policy)
    again, duplicates = resolve_duplicates(used, policy)
    assert again == used
    assert not any(duplicate.is_shadowed for duplicate in duplicates)
