"""Catalogs in memory: find, explain, visibility."""

import pytest

from skillhall._internal.catalog.catalog import (
    Catalog,
    CatalogRoot,
    CatalogSkill,
    RejectedCandidate,
)
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.duplicate_precedence import DuplicateSkill
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.candidate import Candidate
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillNotFound

ROOT = Root("/skills", "project")


def skill(name: str, folder: str = "", *, hidden: bool = False) -> CatalogSkill:
    return CatalogSkill(
        name=name,
        description="Does it.",
        hidden=hidden,
        folder=folder or name,
        file="SKILL.md",
        catalog_root=CatalogRoot(ROOT),
        encoded_frontmatter=Frontmatter({}, name, "Does it."),
    )


def catalog(*skills: CatalogSkill) -> Catalog:
    return Catalog(LENIENT, (ROOT,), skills)


def test_catalog_has_order_and_length() -> None:
    loaded = catalog(skill("b"), skill("a"))
    assert [skill.name for skill in loaded] == ["b", "a"]
    assert len(loaded) == 2


def test_skill_needs_as_much_memory_as_the_candidate_it_replaces() -> None:
    assert len(CatalogSkill._fields) == len(Candidate._fields)


def test_find_by_name() -> None:
    assert catalog(skill("a"), skill("b", "x/y")).find("b").folder == "x/y"


def test_find_by_id_if_no_name_matches() -> None:
    assert catalog(skill("label", "folder")).find("folder").name == "label"


def test_find_prefers_name_to_id() -> None:
    loaded = catalog(skill("other", "pdf"), skill("pdf", "tools"))
    assert loaded.find("pdf").folder == "tools"


def test_unknown_name_has_close_matches() -> None:
    with pytest.raises(SkillNotFound) as caught:
        catalog(skill("pdf-tools"), skill("xlsx")).find("pdf-tool")
    assert caught.value.close == ("pdf-tools",)
    assert "'pdf-tools'" in caught.value.suggestion


def test_unknown_name_may_have_no_close_matches() -> None:
    with pytest.raises(SkillNotFound) as caught:
        catalog(skill("pdf")).find("quite-different")
    assert caught.value.close == ()


def test_find_in_an_empty_catalog_raises() -> None:
    with pytest.raises(SkillNotFound):
        catalog().find("")


def test_hidden_skill_is_not_visible_but_found() -> None:
    loaded = catalog(skill("secret", hidden=True), skill("open"))
    assert [skill.name for skill in loaded.visible] == ["open"]
    assert loaded.find("secret").hidden


def test_id_is_the_path_below_the_root() -> None:
    assert skill("pdf", "office/pdf").id == "office/pdf"


def test_id_of_a_skill_at_the_root_is_the_name_of_the_root() -> None:
    assert skill("pdf")._replace(folder="").id == "skills"


def test_id_of_a_flat_file_has_no_suffix() -> None:
    flat = skill("review")._replace(folder="", file="code.review.md", is_flat=True)
    assert flat.id == "code.review"


def test_skill_has_location_directory_and_source() -> None:
    pdf = skill("pdf", "office/pdf")
    assert pdf.location == "/skills/office/pdf/SKILL.md"
    assert pdf.directory == "/skills/office/pdf"
    assert pdf.folder_handle == FolderHandle("/skills", "office/pdf")
    assert pdf.source == "project"


def test_folder_handle_of_a_linked_skill_is_the_target() -> None:
    linked = skill("pdf")._replace(real_folder=FolderHandle("/elsewhere", "pdf"))
    assert linked.location == "/skills/pdf/SKILL.md"
    assert linked.folder_handle.path == "/elsewhere/pdf"


def test_findings_are_ordered_scan_rejected_accepted() -> None:
    def judged(text: str) -> JudgedFinding:
        return JudgedFinding(Finding(Code.SKIPPED, text), Effect.WARN)

    loaded = Catalog(
        LENIENT,
        (ROOT,),
        (skill("a")._replace(reported=(Finding(Code.SKIPPED, "third"),)),),
        (RejectedCandidate("b", "b", "/skills/b", (judged("second"),)),),
        root_findings=(judged("first"),),
    )
    assert [judged.finding.message for judged in loaded.findings] == ["first", "second", "third"]


def test_explanation_has_winner_shadowed_and_rejected() -> None:
    winner, loser, other = skill("pdf", "one"), skill("pdf", "two"), skill("xlsx")
    rejected = RejectedCandidate("pdf", "", "/skills/pdf", ())
    shadowed = DuplicateSkill(loser, winner, "the first wins")
    loaded = Catalog(LENIENT, (ROOT,), (winner, other), (rejected,), (shadowed,))
    explanation = loaded.explain("pdf")
    assert (explanation.name, explanation.profile) == ("pdf", "lenient")
    assert explanation.winners == (winner,)
    assert explanation.shadowed == (shadowed,)
    assert explanation.rejected == (rejected,)


def test_explanation_of_an_unknown_name_is_empty() -> None:
    explanation = catalog(skill("pdf")).explain("absent")
    assert explanation.winners + explanation.shadowed + explanation.rejected == ()
