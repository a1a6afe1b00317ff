from skillhall.skill.finding import Code
from skillhall.skill.meanings import MEANINGS


def test_every_code_has_a_meaning_of_one_sentence() -> None:
    assert set(MEANINGS) == set(Code)
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())
