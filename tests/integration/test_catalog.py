"""Loading catalogs from folders: order, precedence, findings and names."""

import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.skill_content import open_skill_bundle, read_skill, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT, PROFILES
from skillhall._internal.wiring.catalog import find_profile, load_catalog
from skillhall.errors import SkillFileNotFound, SkillhallError, SkillNotFound, UnknownProfile
from tests.support.trees import (
    IN_MEMORY,
    all_findings,
    codes,
    codes_at,
    load,
    names,
    settings_for,
    skill_text,
    write_skill,
)

EXAMPLES = settings(max_examples=40)


class Entry(NamedTuple):
    """Skill, broken folder or link to create below a root."""

    folder: str
    kind: str
    name: str

    def write(self, root: Path) -> None:
        path = root / self.folder
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.kind == "link":
            path.symlink_to(root / self.name)
        elif self.kind == "skill":
            write_skill(path, self.name, f"At {self.folder}.")
        else:
            path.mkdir(exist_ok=True)
            (path / "SKILL.md").write_text(self.kind, encoding="utf-8")


NAMES = st.sampled_from(["a", "b", "B", "a-b", "é", "z", ".hidden"])
FOLDERS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
KINDS = st.sampled_from(["skill", "skill", "skill", "", "---\nname: x\n", "link"])
ENTRIES = st.lists(
    st.builds(Entry, FOLDERS, KINDS, NAMES), max_size=8, unique_by=lambda e: e.folder
)


def drop_nested(entries: Sequence[Entry]) -> list[Entry]:
    """Drop entries inside others, so that the order of writing does not matter."""
    folders = {f"{entry.folder}/" for entry in entries}
    return [
        entry
        for entry in entries
        if not any(f"{entry.folder}/".startswith(f) for f in folders - {f"{entry.folder}/"})
    ]


def write_and_load(root: Path, entries: Sequence[Entry], profile: str) -> Catalog:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for entry in entries:
        entry.write(root)
    return load(root, profile=profile)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@EXAMPLES
@given(entries=ENTRIES.map(drop_nested), seed=st.integers(0, 99))
def test_catalog_does_not_depend_on_creation_order(
    profile: str, entries: list[Entry], seed: int
) -> None:
    shuffled = random.Random(seed).sample(entries, len(entries))  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        root = Path(folder) / "root"
        catalog = write_and_load(root, entries, profile)
        other = write_and_load(root, shuffled, profile)
    assert catalog == other


@pytest.mark.parametrize("profile", sorted(PROFILES))
@EXAMPLES
@given(entries=ENTRIES.map(drop_nested))
def test_skills_are_sorted_by_name_then_path(profile: str, entries: list[Entry]) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        catalog = write_and_load(Path(folder) / "root", entries, profile)
    keys = [(skill.name, skill.folder) for skill in catalog]
    assert keys == sorted(keys)


@EXAMPLES
@given(roots=st.lists(ENTRIES.map(drop_nested), min_size=2, max_size=3))
def test_first_root_with_a_name_wins(roots: list[list[Entry]]) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        paths = [Path(folder) / str(number) for number in range(len(roots))]
        catalogs = [
            write_and_load(path, entries, "lenient")
            for path, entries in zip(paths, roots, strict=True)
        ]
        combined = load(*paths)
    first: dict[str, str] = {}
    for catalog in catalogs:
        for skill in catalog:
            first.setdefault(skill.name, skill.location)
    assert {skill.name: skill.location for skill in combined} == first


@pytest.fixture
def two_roots(tmp_path: Path) -> tuple[Path, Path]:
    """Two roots with one name in common, which occurs twice in the first."""
    first, second = tmp_path / "first", tmp_path / "second"
    write_skill(first / "alpha", "same", "Alpha.")
    write_skill(first / "beta", "same", "Beta.")
    write_skill(second / "gamma", "same", "Gamma.")
    return first, second


IN_ONE_ROOT = {
    "lenient": (["Alpha."], ["shadowed"]),
    "prompt-repository": (["Alpha."], ["shadowed"]),
    "local-skills": (["Alpha.", "Beta."], []),
    "instruction-skills": (["Alpha."], ["shadowed"]),
    "skill-import": (["Alpha.", "Beta."], ["same-name"]),
    "skills-module": (["Alpha."], ["shadowed"]),
}
ACROSS_ROOTS = {
    "lenient": (["Alpha."], ["shadowed"]),
    "prompt-repository": (["Alpha."], ["shadowed"]),
    "local-skills": (["Alpha."], ["shadowed"]),
    "instruction-skills": (["Alpha.", "Gamma."], ["same-name"]),
    "skill-import": (["Alpha.", "Gamma."], ["same-name"]),
    "skills-module": (["Alpha."], ["shadowed"]),
}


def name_codes(catalog: Catalog) -> list[str]:
    return [code for code in codes(catalog) if code in ("shadowed", "same-name")]


@pytest.mark.parametrize("profile", IN_ONE_ROOT)
def test_duplicate_name_in_one_root(two_roots: tuple[Path, Path], profile: str) -> None:
    catalog = load(two_roots[0], profile=profile)
    assert ([skill.description for skill in catalog], name_codes(catalog)) == IN_ONE_ROOT[profile]


@pytest.mark.parametrize("profile", ACROSS_ROOTS)
def test_duplicate_name_in_two_roots(two_roots: tuple[Path, Path], profile: str) -> None:
    first, second = two_roots
    shutil.rmtree(first / "beta")
    if profile == "local-skills":  # identifies skills by folder
        (second / "gamma").rename(second / "alpha")
    catalog = load(first, second, profile=profile)
    assert ([skill.description for skill in catalog], name_codes(catalog)) == ACROSS_ROOTS[profile]


def test_duplicates_are_resolved_within_each_root(
    two_roots: tuple[Path, Path],
) -> None:
    first, second = two_roots
    catalog = load(second, first, profile="instruction-skills")
    assert [skill.description for skill in catalog] == ["Gamma.", "Alpha."]
    assert [shadowed.skill.description for shadowed in catalog.shadowed] == ["Beta."]
    assert name_codes(catalog) == ["same-name", "shadowed"]


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills", "skill-import"])
def test_duplicate_name_finding_has_both_paths(two_roots: tuple[Path, Path], profile: str) -> None:
    first, _ = two_roots
    catalog = load(first, profile=profile)
    [finding] = [f for f in all_findings(catalog) if f.code in ("shadowed", "same-name")]
    assert finding.path == str(first / "beta" / "SKILL.md")
    assert str(first / "alpha" / "SKILL.md") in finding.message
    assert finding.skill == "same"


def test_local_skills_may_have_equal_names(two_roots: tuple[Path, Path]) -> None:
    catalog = load(*two_roots, profile="local-skills")
    assert [skill.id for skill in catalog] == ["alpha", "beta", "gamma"]


def test_rejected_skill_does_not_shadow_a_valid_one(tmp_path: Path) -> None:
    write_skill(tmp_path / "first" / "pdf", description='""')
    write_skill(tmp_path / "second" / "pdf")
    catalog = load(tmp_path / "first", tmp_path / "second")
    assert [skill.root.path for skill in catalog] == [str(tmp_path / "second")]
    assert codes(catalog) == ["description-missing"]


def test_route_names_are_reserved_in_prompt_repositories(tmp_path: Path) -> None:
    for name in ("refresh", "sources", "refreshing"):
        write_skill(tmp_path / name)
    assert names(load(tmp_path, profile="prompt-repository")) == ["refreshing"]
    assert names(load(tmp_path)) == ["refresh", "refreshing", "sources"]


def test_explanation_has_the_winner_and_the_rule(two_roots: tuple[Path, Path]) -> None:
    first, second = two_roots
    explanation = load(first, second).explain("same")
    assert [skill.directory for skill in explanation.winners] == [str(first / "alpha")]
    assert [(s.skill.directory, s.rule) for s in explanation.shadowed] == [
        (str(first / "beta"), "the first in name and path order wins"),
        (str(second / "gamma"), "the earlier root wins"),
    ]
    assert explanation.rejected == ()


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_explanation_has_the_findings_of_a_rejected_folder(tmp_path: Path, profile: str) -> None:
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "SKILL.md").touch()
    explanation = load(tmp_path, profile=profile).explain("pdf")
    assert explanation.winners == ()
    [rejected] = explanation.rejected
    assert [judged.finding.code for judged in rejected.findings] == ["no-frontmatter"]
    assert rejected.location == str(tmp_path / "pdf" / "SKILL.md")


def test_find_by_name_then_by_id(tmp_path: Path) -> None:
    write_skill(tmp_path / "group" / "folder", "label")
    write_skill(tmp_path / "label", "other")
    catalog = load(tmp_path)
    assert catalog.find("label").id == "group/folder"
    assert catalog.find("group/folder").name == "label"
    assert catalog.find("other").id == "label"


def test_unknown_name_has_close_matches(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf-tools")
    with pytest.raises(SkillNotFound) as caught:
        load(tmp_path).find("pdf-tool")
    assert caught.value.close == ("pdf-tools",)


def test_hidden_skill_is_listed_but_not_visible(tmp_path: Path) -> None:
    write_skill(tmp_path / "open")
    write_skill(tmp_path / "private", more="disable-model-invocation: true\n")
    catalog = load(tmp_path)
    assert names(catalog) == ["open", "private"]
    assert [skill.name for skill in catalog.visible] == ["open"]
    assert catalog.find("private").hidden


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills", "prompt-repository"])
def test_findings_have_path_line_and_skill(tmp_path: Path, profile: str) -> None:
    write_skill(tmp_path / "folder", "name", "x" * 1025)
    catalog = load(tmp_path, profile=profile)
    [finding] = [f for f in all_findings(catalog) if f.code == "description-too-long"]
    assert finding.path == str(tmp_path / "folder" / "SKILL.md")
    assert (finding.skill, finding.line) == ("name", 3)


def test_accepted_findings_are_not_reported(tmp_path: Path) -> None:
    write_skill(tmp_path / "folder", "Label_1", more="unknown: field\n")
    assert codes(load(tmp_path, profile="local-skills")) == []
    assert codes(load(tmp_path)) == ["name-uppercase", "name-characters", "name-not-folder"]


def test_only_rejecting_findings_reject_a_skill(tmp_path: Path) -> None:
    write_skill(tmp_path / "folder", "other")
    for profile in PROFILES:
        catalog = load(tmp_path, profile=profile)
        rejects = [judged for judged in catalog.findings if judged.effect is Effect.REJECT]
        assert (len(catalog), len(catalog.rejected)) == ((0, 1) if rejects else (1, 0))


def test_skills_valid_by_the_specification_load_in_every_profile(tmp_path: Path) -> None:
    for name in ("a", "pdf-tools", "x" * 64, "ü", "1"):
        write_skill(tmp_path / name, name, more="license: MIT\nmetadata:\n  a: b\n")
    expected = names(load(tmp_path, profile="specification"))
    assert len(expected) == 5
    for profile in PROFILES:
        assert names(load(tmp_path, profile=profile)) == expected


@pytest.mark.parametrize(
    ("profile", "loads"),
    [
        ("specification", []),
        ("skills-ref", []),
        ("lenient", [("folder", "Does it.")]),
        ("prompt-repository", [("folder", "Does it.")]),
        ("local-skills", []),
        ("instruction-skills", [("folder", "Does it.")]),
        ("skill-import", []),
        ("skills-module", []),
    ],
)
def test_skill_without_a_name_by_profile(
    tmp_path: Path, profile: str, loads: list[tuple[str, str]]
) -> None:
    write_skill(tmp_path / "folder", "null")
    catalog = load(tmp_path, profile=profile)
    assert [(skill.name, skill.description) for skill in catalog] == loads


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_skill_without_a_description_by_profile(tmp_path: Path, profile: str) -> None:
    write_skill(tmp_path / "folder", description="")
    loads = [("folder", "folder")] if profile == "skill-import" else []
    catalog = load(tmp_path, profile=profile)
    assert [(skill.name, skill.description) for skill in catalog] == loads
    assert "description-missing" in codes_at(catalog, tmp_path / "folder")


def test_catalog_is_a_snapshot(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", description="Old.")
    catalog = load(tmp_path)
    write_skill(tmp_path / "pdf", description="New.")
    write_skill(tmp_path / "added")
    assert [skill.description for skill in catalog] == ["Old."]


def test_read_skill_returns_the_current_content(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", description="Old.")
    skill = load(tmp_path).find("pdf")
    (tmp_path / "pdf" / "SKILL.md").write_text(skill_text("pdf", "New."), encoding="utf-8")
    parsed = read_skill(skill, LENIENT)
    assert (parsed.frontmatter.description, parsed.body) == ("New.", "Do it.")


def test_reading_a_deleted_skill_raises_not_found(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf")
    skill = load(tmp_path).find("pdf")
    shutil.rmtree(tmp_path / "pdf")
    with pytest.raises(SkillFileNotFound):
        read_skill(skill, LENIENT)
    with pytest.raises(SkillFileNotFound):
        open_skill_bundle(skill, LENIENT.scan_policy)


def test_linked_skill_has_the_files_of_its_target(tmp_path: Path) -> None:
    real = write_skill(tmp_path / ".store" / "pdf", "pdf")
    (real / "notes.txt").write_bytes(b"notes")
    (tmp_path / "pdf").symlink_to(".store/pdf")
    skill = load(tmp_path).find("pdf")
    assert list(open_skill_bundle(skill, LENIENT.scan_policy).files) == ["SKILL.md", "notes.txt"]
    assert read_skill_file(ClearedSkill(skill), "notes.txt") == b"notes"
    assert read_skill(skill, LENIENT).findings == ()


def test_profiles_are_found_by_name(tmp_path: Path) -> None:
    assert find_profile("lenient") is LENIENT
    with pytest.raises(UnknownProfile) as caught:
        load_catalog([], "strict", settings=settings_for(tmp_path))
    assert "lenient" in str(caught.value)


def test_catalog_has_its_roots_and_profile(tmp_path: Path) -> None:
    catalog = load(tmp_path / "one", tmp_path / "two")
    assert [root.path for root in catalog.roots] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert catalog.profile is LENIENT


def test_skill_with_a_linked_skill_md_has_its_own_files(tmp_path: Path) -> None:
    (tmp_path / ".shared").mkdir()
    (tmp_path / ".shared" / "text.md").write_text(skill_text("pdf"), encoding="utf-8")
    (tmp_path / ".shared" / "foreign.txt").touch()
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "own.txt").touch()
    (tmp_path / "pdf" / "SKILL.md").symlink_to("../.shared/text.md")
    [skill] = load(tmp_path)
    files = open_skill_bundle(skill, LENIENT.scan_policy).files
    assert "own.txt" in files
    assert "foreign.txt" not in files


def test_flat_prompt_has_no_other_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(skill_text(name), encoding="utf-8")
    skill = load(tmp_path, profile="prompt-repository").find("one")
    files = open_skill_bundle(skill, PROFILES["prompt-repository"].scan_policy)
    assert list(files.files) == ["one.md"]


def test_flat_prompt_does_not_serve_neighboring_files(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(skill_text("one"), encoding="utf-8")
    write_skill(tmp_path / "two")
    skill = load(tmp_path, profile="prompt-repository").find("one")
    with pytest.raises(SkillhallError):
        read_skill_file(ClearedSkill(skill), "two/SKILL.md")
