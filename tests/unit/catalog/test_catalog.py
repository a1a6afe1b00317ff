"""The catalog as a value: finding, explaining, showing."""

import pytest

from skillhall._internal.catalog.catalog import Catalog, RejectedCandidate, Skill
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.precedence import ShadowedSkill
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillNotFound

ROOT = Root("/skills", "project")


def skill(name: str, folder: str = "", *, hidden: bool = False) -> Skill:
    return Skill(
        name=name,
        description="Does it.",
        hidden=hidden,
        folder=folder or name,
        file="SKILL.md",
        root=ROOT,
        root_number=0,
        encoded_frontmatter=Frontmatter({}, name, "Does it."),
    )


def catalog(*skills: Skill) -> Catalog:
    return Catalog(LENIENT, (ROOT,), skills)


def test_a_catalog_is_iterated_and_counted_in_its_order() -> None:
    loaded = catalog(skill("b"), skill("a"))
    assert [one.name for one in loaded] == ["b", "a"]
    assert len(loaded) == 2


def test_a_skill_is_found_by_its_name() -> None:
    assert catalog(skill("a"), skill("b", "x/y")).find("b").folder == "x/y"


def test_a_skill_is_found_by_its_id_when_no_name_fits() -> None:
    assert catalog(skill("label", "folder")).find("folder").name == "label"


def test_a_name_wins_over_an_id() -> None:
    loaded = catalog(skill("other", "pdf"), skill("pdf", "tools"))
    assert loaded.find("pdf").folder == "tools"


def test_a_wrong_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(SkillNotFound) as caught:
        catalog(skill("pdf-tools"), skill("xlsx")).find("pdf-tool")
    assert caught.value.close == ("pdf-tools",)
    assert "'pdf-tools'" in caught.value.suggestion


def test_a_name_like_no_other_has_no_near_names() -> None:
    with pytest.raises(SkillNotFound) as caught:
        catalog(skill("pdf")).find("quite-different")
    assert caught.value.close == ()


def test_an_empty_catalog_finds_nothing() -> None:
    with pytest.raises(SkillNotFound):
        catalog().find("")


def test_a_skill_that_no_model_may_invoke_is_hidden_but_found() -> None:
    loaded = catalog(skill("secret", hidden=True), skill("open"))
    assert [one.name for one in loaded.visible] == ["open"]
    assert loaded.find("secret").hidden


def test_an_id_is_the_path_below_the_root() -> None:
    assert skill("pdf", "office/pdf").id == "office/pdf"


def test_the_id_of_a_root_that_is_a_skill_is_the_name_of_the_root() -> None:
    assert skill("pdf")._replace(folder="").id == "skills"


def test_the_id_of_a_flat_file_is_its_name_without_the_ending() -> None:
    flat = skill("review")._replace(folder="", file="code.review.md", is_flat=True)
    assert flat.id == "code.review"


def test_a_skill_knows_where_it_stands() -> None:
    found = skill("pdf", "office/pdf")
    assert found.location == "/skills/office/pdf/SKILL.md"
    assert found.directory == "/skills/office/pdf"
    assert found.folder_handle == FolderHandle("/skills", "office/pdf")
    assert found.source == "project"


def test_a_skill_behind_a_link_is_read_where_the_link_led() -> None:
    linked = skill("pdf")._replace(real_folder=FolderHandle("/elsewhere", "pdf"))
    assert linked.location == "/skills/pdf/SKILL.md"
    assert linked.folder_handle.path == "/elsewhere/pdf"


def test_findings_are_those_of_the_walk_then_of_the_rejected_then_of_the_skills() -> None:
    def judged(text: str) -> JudgedFinding:
        return JudgedFinding(Finding(Code.SKIPPED, text), Effect.WARN)

    loaded = Catalog(
        LENIENT,
        (ROOT,),
        (skill("a")._replace(findings=(judged("third"),)),),
        (RejectedCandidate("b", "b", "/skills/b", (judged("second"),)),),
        scan_findings=(judged("first"),),
    )
    assert [one.finding.message for one in loaded.findings] == ["first", "second", "third"]


def test_an_explanation_names_winner_shadowed_and_rejected_copies() -> None:
    winner, loser, other = skill("pdf", "one"), skill("pdf", "two"), skill("xlsx")
    lost = RejectedCandidate("pdf", "", "/skills/pdf", ())
    shadowed = ShadowedSkill(loser, winner, "the first wins")
    loaded = Catalog(LENIENT, (ROOT,), (winner, other), (lost,), (shadowed,))
    told = loaded.explain("pdf")
    assert (told.name, told.profile) == ("pdf", "lenient")
    assert told.winners == (winner,)
    assert told.shadowed == (shadowed,)
    assert told.rejected == (lost,)


def test_an_unknown_name_is_explained_by_nothing() -> None:
    told = catalog(skill("pdf")).explain("absent")
    assert told.winners + told.shadowed + told.rejected == ()
