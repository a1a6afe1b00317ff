from dataclasses import dataclass

import pytest

from skillhall._internal.policy.precedence import (
    DuplicatePolicy,
    Identity,
    PrecedencePolicy,
    resolve_duplicates,
)
from skillhall._internal.skill.finding import Code

PAIRS = [("a", 0), ("b", 0), ("a", 0), ("a", 1), ("a", 1), ("b", 2), ("c", 2)]
ALL_KEPT = PrecedencePolicy(in_root=DuplicatePolicy.KEEP_ALL, across_roots=DuplicatePolicy.KEEP_ALL)


@dataclass(frozen=True)
class Skill:
    name: str
    root_number: int = 0
    id: str = ""
    is_flat: bool = False
    location: str = "/somewhere/SKILL.md"


def test_different_names_are_all_kept_in_order() -> None:
    skills = [Skill("b"), Skill("a"), Skill("c", 1)]
    assert resolve_duplicates(skills, PrecedencePolicy()) == (skills, [], [])


def test_the_first_of_a_name_wins_and_the_other_is_told() -> None:
    first, second = Skill("a", location="/1"), Skill("a", 1, location="/2")
    kept, shadowed, findings = resolve_duplicates([first, second], PrecedencePolicy())
    assert kept == [first]
    assert [(one.skill, one.winner) for one in shadowed] == [(second, first)]
    assert [(one.code, one.path, one.skill) for one in findings] == [(Code.SHADOWED, "/2", "a")]
    assert findings[0].message == "'a' is shadowed by /1 (the earlier root wins)"


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
def test_the_rule_that_decided_is_named(winner: Skill, skill: Skill, rule: str) -> None:
    _, (shadowed,), (finding,) = resolve_duplicates([winner, skill], PrecedencePolicy())
    assert shadowed.rule == rule
    assert rule in finding.message


def test_all_of_a_name_are_kept_where_that_is_the_rule() -> None:
    skills = [Skill("a", location="/1"), Skill("a", location="/2"), Skill("a", 1, location="/3")]
    kept, shadowed, findings = resolve_duplicates(skills, ALL_KEPT)
    assert (kept, shadowed) == (skills, [])
    assert [(one.code, one.path) for one in findings] == [
        (Code.SAME_NAME, "/2"),
        (Code.SAME_NAME, "/3"),
    ]
    assert findings[0].message == "'a' is also at /1; both are kept"


def test_the_rules_for_one_root_and_for_several_differ() -> None:
    policy = PrecedencePolicy(across_roots=DuplicatePolicy.KEEP_ALL)
    first, same_root, other_root = Skill("a"), Skill("a", location="/2"), Skill("a", 1)
    kept, shadowed, _ = resolve_duplicates([first, same_root, other_root], policy)
    assert kept == [first, other_root]
    assert [one.skill for one in shadowed] == [same_root]


def test_skills_may_be_the_same_by_id_and_not_by_name() -> None:
    policy = PrecedencePolicy(identity=Identity.ID)
    first, same_name, same_id = Skill("a", id="1"), Skill("a", id="2"), Skill("b", id="1")
    kept, shadowed, _ = resolve_duplicates([first, same_name, same_id], policy)
    assert kept == [first, same_name]
    assert [one.skill for one in shadowed] == [same_id]


@pytest.mark.parametrize("in_root", list(DuplicatePolicy))
@pytest.mark.parametrize("across_roots", list(DuplicatePolicy))
def test_settling_twice_changes_nothing_more(
    in_root: DuplicatePolicy, across_roots: DuplicatePolicy
) -> None:
    policy = PrecedencePolicy(in_root=in_root, across_roots=across_roots)
    skills = [Skill(name, root, location=f"/{n}") for n, (name, root) in enumerate(PAIRS)]
    kept, _, _ = resolve_duplicates(skills, policy)
    again, shadowed, _ = resolve_duplicates(kept, policy)
    assert (again, shadowed) == (kept, [])
