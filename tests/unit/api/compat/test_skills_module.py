from pathlib import Path

import pytest

from skillhall._internal.api.compat.skills_module import (
    SkillMetadata,
    discover_skills,
    load_skill_bundle,
    load_skill_bundles,
    parse_skill_metadata,
    skills_to_xml,
)
from skillhall._internal.skill.finding import Code
from skillhall.errors import SkillFileNotFound, SkillParseError
from tests.support.skills import make_skill, make_skill_md


def test_project_folder_precedes_the_home_folder(tmp_path: Path) -> None:
    make_skill(tmp_path / ".skills", "pdf", data=make_skill_md("pdf", "The project's."))
    make_skill(Path.home() / ".skillhall" / "skills", "pdf")
    make_skill(Path.home() / ".skillhall" / "skills", "csv")
    skills = discover_skills(cwd=tmp_path)
    assert [skill.name for skill in skills] == ["pdf", "csv"]
    assert skills[0].description == "The project's."
    assert Code.SHADOWED in [judged.finding.code for judged in skills.findings]


def test_missing_default_folders_give_no_finding(tmp_path: Path) -> None:
    skills = discover_skills(cwd=tmp_path)
    assert (list(skills), skills.findings) == ([], ())


def test_missing_explicit_folder_is_a_finding(tmp_path: Path) -> None:
    skills = discover_skills([tmp_path / "none"])
    assert [judged.finding.code for judged in skills.findings] == [Code.ROOT_MISSING]


def test_discovery_does_not_raise_on_invalid_paths(tmp_path: Path) -> None:
    skills = discover_skills(["a\0b"], cwd=tmp_path)
    assert [judged.finding.code for judged in skills.findings] == [Code.ROOT_MISSING]


def test_metadata_has_every_field_of_the_specification(tmp_path: Path) -> None:
    data = make_skill_md(
        "pdf",
        "Reads.",
        allowed_tools="Read Bash(git add *)",
        license="MIT",
        compatibility="Needs a PDF.",
        metadata="{author: ada}",
    )
    make_skill(tmp_path, "pdf", data=data)
    assert discover_skills([tmp_path]) == [
        SkillMetadata(
            "pdf",
            "Reads.",
            str(tmp_path / "pdf" / "SKILL.md"),
            ("Read", "Bash(git add *)"),
            "MIT",
            "Needs a PDF.",
            {"author": "ada"},
        )
    ]


@pytest.mark.parametrize("content", [make_skill_md("pdf"), make_skill_md("pdf").decode()])
def test_string_and_bytes_are_parsed_alike(content: str | bytes) -> None:
    metadata = parse_skill_metadata(content, "x/SKILL.md")
    assert metadata == SkillMetadata("pdf", "Reads PDF files.", "x/SKILL.md")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("# body", "No YAML frontmatter found in P"),
        ("---\nname: a", "No YAML frontmatter found in P"),
        ("---\ndescription: d\n---\n", "Missing or invalid 'name' field in P"),
        ("---\nname:\n---\n", "Missing or invalid 'name' field in P"),
        ("---\nname: a\n---\n", "Missing or invalid 'description' field in P"),
        ("---\nname: A\n---\n", "Missing or invalid 'description' field in P"),
        ("---\nname: A\ndescription: d\n---\n", "Invalid 'name' format in P: "),
        ("---\nname: -\ndescription: d\n---\n", "Invalid 'name' format in P: "),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\n", "Invalid 'name' format in P: "),
        ("---\n- a\n---\n", "Invalid frontmatter in P: "),
        ("---\nname: \ud800\ndescription: d\n---\n", "Invalid frontmatter in P: "),
    ],
)
def test_parse_error_names_the_file_and_the_field(content: str, problem: str) -> None:
    with pytest.raises(SkillParseError) as caught:
        parse_skill_metadata(content, "P")
    assert str(caught.value).startswith(problem)
    assert str(caught.value) == problem or problem.endswith(": ")


def test_bundle_contains_every_file(tmp_path: Path) -> None:
    files = {"assets/logo.png": b"\x89PNG\xff", ".env.example": b"A=1", "__MACOSX/x": b""}
    make_skill(tmp_path, "pdf", files=files)
    bundle = load_skill_bundle(tmp_path / "pdf")
    assert bundle.name == "pdf"
    assert dict(bundle.files) == {
        ".env.example": b"A=1",
        "SKILL.md": make_skill_md("pdf"),
        "assets/logo.png": b"\x89PNG\xff",
    }


def test_link_in_a_bundle_is_skipped_with_a_finding(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "pdf")
    (skill / "secret").symlink_to("/etc/passwd")
    bundle = load_skill_bundle(skill)
    assert list(bundle.files) == ["SKILL.md"]
    assert [finding.code for finding in bundle.findings] == [Code.FILE_LEFT_OUT]


def test_folder_without_skill_md_has_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(SkillFileNotFound):
        load_skill_bundle(tmp_path)
    with pytest.raises(SkillFileNotFound):
        load_skill_bundle(tmp_path / "none")


def test_discovered_skills_are_bundled_in_order(tmp_path: Path) -> None:
    make_skill(tmp_path, "b")
    make_skill(tmp_path, "a")
    bundles = load_skill_bundles(discover_skills([tmp_path]))
    assert [bundle.name for bundle in bundles] == ["a", "b"]


def test_hidden_skill_is_discovered_but_not_listed(tmp_path: Path) -> None:
    data = make_skill_md("pdf", disable_model_invocation="true")
    make_skill(tmp_path, "pdf", data=data)
    skills = discover_skills([tmp_path])
    assert [skill.hidden for skill in skills] == [True]
    assert skills_to_xml(skills) == "<available_skills>\n</available_skills>"
