from skillhall._internal.authoring.portability import judge_skill_md
from skillhall._internal.web.skills.compat_card import build_compat_card
from tests.support.portability.odd_skills import ODD_SKILLS


def test_card_of_a_portable_skill_has_no_rows() -> None:
    card = build_compat_card(judge_skill_md(ODD_SKILLS["plain"], "plain"))
    assert (card.loaded, card.rows) == (card.total, ())


def test_card_shows_clients_that_drop_the_skill_first() -> None:
    card = build_compat_card(judge_skill_md(ODD_SKILLS["other-folder"], "other-folder"))
    assert [row.outcome for row in card.rows] == ["dropped", "loss"]
    assert card.rows[1].fields == ("name",)
    assert card.rows[1].reasons[0].text == "the name differs from the folder"
