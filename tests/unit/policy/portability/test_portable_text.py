import pytest
from hypothesis import given

from skillhall._internal.policy.portability.portable_text import make_portable
from skillhall._internal.policy.portability.traits import Trait, find_traits
from skillhall._internal.skill.parser import parse_skill
from tests.support.portability.odd_skills import ODD_SKILLS
from tests.support.strategies import any_bytes


@pytest.mark.parametrize(
    "skill",
    [
        "123",
        "both-numbers",
        "carriage-returns",
        "description-at",
        "description-true",
        "fence-spaces",
        "folded",
        "name-missing",
        "no-final-newline",
        "space-before-colon",
        "tab-after-colon",
        "wrapped",
    ],
)
def test_odd_skill_becomes_portable(skill: str) -> None:
    fixed, changes = make_portable(ODD_SKILLS[skill], skill)
    assert changes
    assert find_traits(fixed, skill) <= {Trait.NAME_NOT_FOLDER, Trait.DESCRIPTION_QUOTED}


@pytest.mark.parametrize("skill", ["plain", "literal", "other-folder", "rule-in-body"])
def test_text_that_cannot_be_improved_is_unchanged(skill: str) -> None:
    assert make_portable(ODD_SKILLS[skill], skill) == (ODD_SKILLS[skill], ())


@pytest.mark.parametrize("skill", [*ODD_SKILLS])
def test_fixes_change_neither_description_nor_body(skill: str) -> None:
    before = parse_skill(ODD_SKILLS[skill], skill)
    after = parse_skill(make_portable(ODD_SKILLS[skill], skill).data, skill)
    assert after.body == before.body
    if before.frontmatter.description:
        assert after.frontmatter.description == before.frontmatter.description


@given(any_bytes)
def test_any_bytes_can_be_fixed(data: bytes) -> None:
    make_portable(data, "pdf-tools")
