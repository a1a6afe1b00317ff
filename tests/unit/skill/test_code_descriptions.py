from skillhall._internal.skill.code_descriptions import MEANINGS
from skillhall._internal.skill.finding import Code


def test_every_code_has_a_meaning_of_one_sentence() -> None:
    assert set(MEANINGS) == set(Code)
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())
