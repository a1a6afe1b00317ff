import pytest

from skillhall._internal.policy.portability.traits import Trait, find_traits
from tests.support.portability.odd_skills import ODD_SKILLS


def test_plain_skill_has_no_traits() -> None:
    assert find_traits(ODD_SKILLS["plain"], "plain") == set()


@pytest.mark.parametrize(
    ("skill", "trait"),
    [
        ("bom", Trait.BOM),
        ("fence-spaces", Trait.DELIMITER_SPACES),
        ("fence-dots", Trait.CLOSED_WITH_DOTS),
        ("comment-rule", Trait.RULE_BEFORE_FIELDS),
        ("description-rule", Trait.RULE_IN_FRONTMATTER),
        ("value-colons", Trait.YAML_COLON),
        ("value-colon-quote", Trait.YAML_COLON_AND_QUOTE),
        ("value-colon-end", Trait.YAML_COLON_END),
        ("description-at", Trait.YAML_INVALID_START),
        ("description-star", Trait.YAML_INVALID),
        ("123", Trait.NAME_NUMBER),
        ("2024-01-02", Trait.NAME_DATE),
        ("other-folder", Trait.NAME_NOT_FOLDER),
        ("description-true", Trait.DESCRIPTION_YES),
        ("wrapped", Trait.DESCRIPTION_WRAPPED),
        ("hidden", Trait.HIDDEN),
    ],
)
def test_odd_skill_has_the_trait(skill: str, trait: Trait) -> None:
    assert find_traits(ODD_SKILLS[skill], skill) == {trait}


def test_quoted_number_is_no_number() -> None:
    data = b'---\nname: "123"\ndescription: Counts words.\n---\n'
    assert find_traits(data, "123") == set()


def test_every_trait_occurs_in_an_odd_skill() -> None:
    found = {trait for folder, data in ODD_SKILLS.items() for trait in find_traits(data, folder)}
    assert found == set(Trait)
