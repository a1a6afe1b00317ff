"""`Skills` behaves like a mapping, and never shows hidden skills or files outside of a skill."""

import json
from pathlib import Path

import pytest

import skillhall
from skillhall import Skills
from skillhall.errors import (
    SkillFileNotFound,
    SkillNotFound,
    SkillRejected,
    UnknownProfile,
    UnsafePath,
)
from tests.support.github_api_server import Repository
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def skills(project: Path) -> Skills:
    return Skills.load("skills")


def test_skills_are_a_mapping_without_hidden_skills(skills: Skills) -> None:
    assert list(skills) == ["csv-report", "pdf-tools"]
    assert len(skills) == 2
    assert "deploy" not in skills
    assert skills.get("deploy") is None
    assert list(skills.hidden) == ["deploy"]
    assert skills.hidden["deploy"].hidden


def test_unknown_name_is_a_key_error_with_similar_names(skills: Skills) -> None:
    with pytest.raises(SkillNotFound) as caught:
        skills["pdf-tool"]
    assert isinstance(caught.value, KeyError)
    assert caught.value.close == ("pdf-tools",)


def test_skill_has_its_frontmatter_files_and_folder(skills: Skills, project: Path) -> None:
    skill = skills["pdf-tools"]
    assert skill.frontmatter["description"] == "Fills in PDF forms."
    assert skill.directory == project / "skills" / "pdf-tools"
    assert skill.files == ("references/forms.md",)
    assert skill.read_text(Path("references/forms.md")) == "Forms.\n"
    assert skill.read_bytes("SKILL.md").startswith(b"---\n")


def test_file_outside_of_the_skill_is_not_read(skills: Skills) -> None:
    with pytest.raises(UnsafePath):
        skills["pdf-tools"].read_bytes("../csv-report/SKILL.md")
    with pytest.raises(SkillFileNotFound):
        skills["pdf-tools"].read_bytes("missing.md")


def test_skill_that_became_invalid_is_rejected_when_it_is_read(
    skills: Skills, project: Path
) -> None:
    (project / "skills" / "csv-report" / "SKILL.md").write_bytes(b"no frontmatter")
    with pytest.raises(SkillRejected):
        skills.activate("csv-report")


def test_invalid_skill_is_a_finding(project: Path) -> None:
    make_skill(project / "skills", "broken", data=b"no frontmatter")
    skills = Skills.load("skills")
    assert "broken" not in skills
    assert any("broken" in str(finding) for finding in skills.findings)
    assert "rejected:" in skills.explain("broken")


def test_missing_root_and_unknown_profile_are_errors(project: Path) -> None:
    with pytest.raises(SkillFileNotFound):
        Skills.load("missing")
    with pytest.raises(UnknownProfile):
        Skills.load("skills", profile="strict")


def test_first_root_wins_and_explain_says_so(project: Path) -> None:
    make_skill(project / "more", "pdf-tools")
    skills = Skills.load("more", "skills")
    assert skills["pdf-tools"].directory == project / "more" / "pdf-tools"
    assert f"shadowed: {project}/skills/pdf-tools/SKILL.md" in skills.explain("pdf-tools")
    with pytest.raises(SkillNotFound):
        skills.explain("missing")


def test_listing_formats_have_the_same_skills(skills: Skills) -> None:
    names = [row["name"] for row in json.loads(skills.listing(format="json"))]
    assert names == list(skills)
    assert all(f"**{name}**" in skills.listing(format="markdown") for name in names)
    with pytest.raises(ValueError, match="max_tokens"):
        skills.listing(max_tokens=10, format="json")


def test_select_keeps_matching_names_only(skills: Skills) -> None:
    selected = skills.select("pdf-*")
    assert list(selected) == ["pdf-tools"]
    assert list(selected.select("csv-*")) == []
    assert selected.listing() != skills.listing()


def test_search_finds_words_of_the_body(project: Path) -> None:
    make_skill(project / "skills", "notes", data=make_skill_md("notes", body="Use a zeppelin.\n"))
    skills = Skills.load("skills", cache=False)
    assert [hit.skill.name for hit in skills.search("zeppelin")] == ["notes"]


def test_search_of_a_selection_finds_only_its_skills(skills: Skills) -> None:
    assert [hit.skill.name for hit in skills.select("pdf-*").search("skill", limit=50)] in (
        [],
        ["pdf-tools"],
    )


def test_skills_of_a_repository_are_opened_as_a_copy(github: Repository) -> None:
    skills = Skills.open("acme/skills")
    assert list(skills) == ["lint", "pdf", "pdf-tools"]
    assert skills["pdf"].body == "# Steps"
    assert skills.refresh() is skills
    github.commit({"skills/new/SKILL.md": make_skill_md("new")}, "main")
    assert list(skills.refresh()) == ["new"]


@pytest.mark.parametrize("name", ["load_catalog", "Catalog", "render_listing", "LocalSkills"])
def test_old_name_still_works_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"skillhall.{name} is deprecated.*; use "):
        assert getattr(skillhall, name) is not None


def test_all_old_names_still_exist() -> None:
    from skillhall._deprecated import DEPRECATED  # noqa: PLC0415 - only for this test

    for name in DEPRECATED:
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(skillhall, name) is not None


def test_old_names_are_removed_in_the_version_that_the_warning_names() -> None:
    from skillhall._deprecated import DEPRECATED, REMOVED_IN  # noqa: PLC0415 - only for this test

    version = [int(part) for part in skillhall.__version__.split(".")[:2]]
    assert [int(part) for part in REMOVED_IN.split(".")] > version, f"remove {[*DEPRECATED]}"
    with pytest.warns(DeprecationWarning, match=f"will be removed in {REMOVED_IN}; use "):
        assert skillhall.load_catalog is not None


def test_mappings_of_a_snapshot_cannot_be_changed(skills: Skills) -> None:
    for mapping in (skills.hidden, skills["pdf-tools"].frontmatter):
        with pytest.raises(TypeError):
            mapping["name"] = "other"  # type: ignore[index]  # the mistake itself


def test_second_skill_of_a_name_is_called_by_its_id_and_is_a_finding(project: Path) -> None:
    make_skill(project / "more", "other", data=make_skill_md("pdf-tools"))
    skills = Skills.load("skills", "more", profile="instruction-skills")
    assert skills["other"].directory == project / "more" / "other"
    assert [finding.path for finding in skills.findings if finding.code == "same-name"] == [
        f"{project}/more/other/SKILL.md"
    ]


def test_path_object_is_opened_as_a_local_source(project: Path) -> None:
    assert list(Skills.open(Path("skills"))) == ["csv-report", "pdf-tools"]
    with pytest.raises(SkillFileNotFound):  # a string would be a repository
        Skills.open(Path("acme/skills"))


@pytest.mark.parametrize(
    "use", ["import skillhall\nskillhall.load_catalog", "from skillhall import load_catalog"]
)
def test_warning_about_an_old_name_names_the_line_that_uses_it(use: str) -> None:
    with pytest.warns(DeprecationWarning, match="load_catalog") as caught:
        exec(compile(use, "program.py", "exec"), {})  # noqa: S102 - our own text
    assert {(warning.filename, warning.lineno) for warning in caught} == {
        ("program.py", use.count("\n") + 1)
    }


def test_listing_for_a_task_has_its_skills_first(project: Path) -> None:
    for number in range(99):
        make_skill(project / "skills", f"a-{number:02}")
    data = make_skill_md("tide-tables", "Computes high water in a harbour.")
    make_skill(project / "skills/sea", "tide-tables", data=data)
    skills = Skills.load("skills", cache=False)
    assert skills.listing(task="harbour") == skills.listing()
    assert skills.listing(task="harbour", max_tokens=9_000) == skills.listing()
    cut = skills.listing(task="When is high water?", max_tokens=120)
    assert "tide-tables" not in skills.listing(max_tokens=120)
    assert cut.splitlines()[1] == "- tide-tables: Computes high water in a harbour."
    assert cut.splitlines()[-2].endswith(" more skills are not listed here.")
    pinned = skills.listing(
        task="When is high water?", max_tokens=120, pinned=["a-3?"], excluded=["sea/*"]
    )
    assert pinned.splitlines()[1] == "- a-30: Reads PDF files."
    assert "tide-tables" not in pinned
    assert skills.listing(pinned=["sea/*"]).splitlines()[2] == "    <name>tide-tables</name>"
