from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Code


def test_every_code_has_a_meaning_of_one_sentence() -> None:
    assert set(CODE_DESCRIPTIONS) == set(Code)
    assert all(meaning.endswith(".") for meaning in CODE_DESCRIPTIONS.values())
