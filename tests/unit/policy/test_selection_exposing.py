import pytest

from skillhall._internal.policy.selection_exposing import shown_to_models
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.yaml.values import Value


@pytest.mark.parametrize(("value", "shown"), [(True, False), ("true", False), (False, True)])
def test_a_skill_that_disables_model_invocation_is_not_shown(value: Value, shown: bool) -> None:
    assert shown_to_models(Frontmatter.of({"disable-model-invocation": value})) is shown


def test_a_skill_is_shown_unless_it_says_otherwise() -> None:
    assert shown_to_models(Frontmatter.of({"name": "a"}))
