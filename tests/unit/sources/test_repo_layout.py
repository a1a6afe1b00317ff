"""Repository layout: which paths are skills, and where a name is searched."""

import pytest

from skillhall._internal.sources.repo_layout import (
    find_enclosing_folder,
    find_skill_folders,
    find_skills,
)
from skillhall.errors import NoSkillThere, SkillNotFound, SourceRejected

PATHS = [
    "README.md",
    "pdf/SKILL.md",
    "skills/pdf/SKILL.md",
    "skills/pdf/references/SKILL.md",
    "skills/.curated/notes/SKILL.md",
    "deep/er/mail/SKILL.md",
    "a/twin/SKILL.md",
    "b/twin/SKILL.md",
    ".claude/skills/pdf/SKILL.md",
    ".claude/skills/hidden/skill.md",
    "node_modules/x/skills/mail/SKILL.md",
    "empty/README.md",
]


def test_nested_skill_belongs_to_outer_skill() -> None:
    assert find_skill_folders(["a/SKILL.md", "a/b/SKILL.md", "c/x"]) == {"a"}


def test_root_skill_is_the_only_one() -> None:
    assert find_skill_folders(["SKILL.md", "skills/a/SKILL.md"]) == {""}
    assert find_enclosing_folder("skills/a/SKILL.md", {""}) == ""


@pytest.mark.parametrize(
    ("wanted", "folders"),
    [
        ("pdf", ["skills/pdf"]),
        ("mail", ["deep/er/mail"]),
        ("hidden", [".claude/skills/hidden"]),
        ("skills", ["skills/.curated/notes", "skills/pdf"]),
        ("deep/er", ["deep/er/mail"]),
        (".claude/skills/pdf", [".claude/skills/pdf"]),
    ],
)
def test_name_is_searched_in_skills_folder_then_root_then_everywhere(
    wanted: str, folders: list[str]
) -> None:
    assert find_skills(PATHS, wanted, "acme/skills") == folders


def test_installed_skills_are_not_listed_next_to_others() -> None:
    result = find_skills(PATHS, "", "acme/skills")
    assert ".claude/skills/pdf" not in result
    assert "skills/.curated/notes" in result
    assert not any("node_modules" in folder for folder in result)


def test_installed_skills_are_listed_if_there_are_no_others() -> None:
    assert find_skills([".claude/skills/a/SKILL.md"], "", "x/y") == [".claude/skills/a"]


def test_ambiguous_name_is_rejected_with_hint() -> None:
    with pytest.raises(SourceRejected, match="a/twin, b/twin"):
        find_skills(PATHS, "twin", "acme/skills/twin")


def test_folder_without_skill_and_unknown_name_differ() -> None:
    with pytest.raises(NoSkillThere):
        find_skills(PATHS, "empty", "acme/skills/empty")
    with pytest.raises(SkillNotFound) as caught:
        find_skills(PATHS, "mial", "acme/skills/mial")
    assert caught.value.close == ("mail",)


def test_repository_without_skills_raises_no_skill() -> None:
    with pytest.raises(NoSkillThere, match="acme/tools"):
        find_skills(["README.md"], "", "acme/tools")
