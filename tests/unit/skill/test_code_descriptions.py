from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Code


def test_every_code_has_a_description() -> None:
    assert set(CODE_DESCRIPTIONS) == set(Code)
    assert all(text.endswith(".") for text in CODE_DESCRIPTIONS.values())
