"""From folders to a catalog: order, precedence, findings, and what a name means."""

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
from skillhall._internal.catalog.reader import open_skill_bundle, read_skill, read_skill_file
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
    """One thing to put below a root."""

    folder: str
    kind: str
    name: str

    def write(self, root: Path) -> None:
        place = root / self.folder
        place.parent.mkdir(parents=True, exist_ok=True)
        if self.kind == "link":
            place.symlink_to(root / self.name)
        elif self.kind == "skill":
            write_skill(place, self.name, f"At {self.folder}.")
        else:
            place.mkdir(exist_ok=True)
            (place / "SKILL.md").write_text(self.kind, encoding="utf-8")


NAMES = st.sampled_from(["a", "b", "B", "a-b", "é", "z", ".hidden"])
FOLDERS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
KINDS = st.sampled_from(["skill", "skill", "skill", "", "---\nname: x\n", "link"])
ENTRIES = st.lists(
    st.builds(Entry, FOLDERS, KINDS, NAMES), max_size=8, unique_by=lambda e: e.folder
)


def standing_alone(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that lie in no other one, so that any order of writing gives one tree."""
    folders = {f"{entry.folder}/" for entry in entries}
    return [
        entry
        for entry in entries
        if not any(f"{entry.folder}/".startswith(one) for one in folders - {f"{entry.folder}/"})
    ]


def write_and_load(root: Path, entries: Sequence[Entry], profile: str) -> Catalog:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for entry in entries:
        entry.write(root)
    return load(root, profile=profile)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@EXAMPLES
@given(entries=ENTRIES.map(standing_alone), seed=st.integers(0, 99))
def test_a_catalog_does_not_depend_on_the_order_of_creation(
    profile: str, entries: list[Entry], seed: int
) -> None:
    shuffled = random.Random(seed).sample(entries, len(entries))  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        root = Path(folder) / "root"
        one = write_and_load(root, entries, profile)
        other = write_and_load(root, shuffled, profile)
    assert one == other


@pytest.mark.parametrize("profile", sorted(PROFILES))
@EXAMPLES
@given(entries=ENTRIES.map(standing_alone))
def test_skills_are_in_order_of_name_then_path(profile: str, entries: list[Entry]) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        catalog = write_and_load(Path(folder) / "root", entries, profile)
    keys = [(skill.name, skill.folder) for skill in catalog]
    assert keys == sorted(keys)


@EXAMPLES
@given(roots=st.lists(ENTRIES.map(standing_alone), min_size=2, max_size=3))
def test_the_earliest_root_that_has_a_name_gives_the_skill(roots: list[list[Entry]]) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        places = [Path(folder) / str(number) for number in range(len(roots))]
        alone = [
            write_and_load(place, entries, "lenient")
            for place, entries in zip(places, roots, strict=True)
        ]
        together = load(*places)
    first: dict[str, str] = {}
    for catalog in alone:
        for skill in catalog:
            first.setdefault(skill.name, skill.location)
    assert {skill.name: skill.location for skill in together} == first


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two roots with one name in common, and two folders of one name in the first."""
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


def about_names(catalog: Catalog) -> list[str]:
    return [code for code in codes(catalog) if code in ("shadowed", "same-name")]


@pytest.mark.parametrize("profile", IN_ONE_ROOT)
def test_one_name_twice_in_one_root(two: tuple[Path, Path], profile: str) -> None:
    catalog = load(two[0], profile=profile)
    kept, told = IN_ONE_ROOT[profile]
    assert [skill.description for skill in catalog] == kept
    assert about_names(catalog) == told


@pytest.mark.parametrize("profile", ACROSS_ROOTS)
def test_one_name_in_two_roots(two: tuple[Path, Path], profile: str) -> None:
    first, second = two
    shutil.rmtree(first / "beta")
    if profile == "local-skills":  # there a skill is known by its folder
        (second / "gamma").rename(second / "alpha")
    catalog = load(first, second, profile=profile)
    kept, told = ACROSS_ROOTS[profile]
    assert [skill.description for skill in catalog] == kept
    assert about_names(catalog) == told


def test_one_name_twice_in_the_second_root_is_settled_inside_that_root(
    two: tuple[Path, Path],
) -> None:
    first, second = two
    catalog = load(second, first, profile="instruction-skills")
    assert [skill.description for skill in catalog] == ["Gamma.", "Alpha."]
    assert [lost.skill.description for lost in catalog.shadowed] == ["Beta."]
    assert about_names(catalog) == ["same-name", "shadowed"]


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills", "skill-import"])
def test_the_finding_about_equal_names_tells_both_places(
    two: tuple[Path, Path], profile: str
) -> None:
    first, _ = two
    catalog = load(first, profile=profile)
    [found] = [f for f in all_findings(catalog) if f.code in ("shadowed", "same-name")]
    assert found.path == str(first / "beta" / "SKILL.md")
    assert str(first / "alpha" / "SKILL.md") in found.message
    assert found.skill == "same"


def test_folders_with_the_same_label_are_two_local_skills(two: tuple[Path, Path]) -> None:
    catalog = load(*two, profile="local-skills")
    assert [skill.id for skill in catalog] == ["alpha", "beta", "gamma"]


def test_a_rejected_copy_does_not_shadow_a_good_one(tmp_path: Path) -> None:
    write_skill(tmp_path / "first" / "pdf", description='""')
    write_skill(tmp_path / "second" / "pdf")
    catalog = load(tmp_path / "first", tmp_path / "second")
    assert [skill.root.path for skill in catalog] == [str(tmp_path / "second")]
    assert codes(catalog) == ["description-missing"]


def test_a_name_that_is_a_route_is_refused_in_a_prompt_repository(tmp_path: Path) -> None:
    for name in ("refresh", "sources", "refreshing"):
        write_skill(tmp_path / name)
    assert names(load(tmp_path, profile="prompt-repository")) == ["refreshing"]
    assert names(load(tmp_path)) == ["refresh", "refreshing", "sources"]


def test_an_explanation_tells_which_copy_won_and_by_which_rule(two: tuple[Path, Path]) -> None:
    first, second = two
    told = load(first, second).explain("same")
    assert [skill.directory for skill in told.winners] == [str(first / "alpha")]
    assert [(lost.skill.directory, lost.rule) for lost in told.shadowed] == [
        (str(first / "beta"), "the first in name and path order wins"),
        (str(second / "gamma"), "the earlier root wins"),
    ]
    assert told.rejected == ()


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_an_explanation_tells_why_a_folder_is_no_skill(tmp_path: Path, profile: str) -> None:
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "SKILL.md").touch()
    told = load(tmp_path, profile=profile).explain("pdf")
    assert told.winners == ()
    [lost] = told.rejected
    assert [one.finding.code for one in lost.findings] == ["no-frontmatter"]
    assert lost.location == str(tmp_path / "pdf" / "SKILL.md")


def test_a_skill_is_found_by_name_then_by_id(tmp_path: Path) -> None:
    write_skill(tmp_path / "group" / "folder", "label")
    write_skill(tmp_path / "label", "other")
    catalog = load(tmp_path)
    assert catalog.find("label").id == "group/folder"
    assert catalog.find("group/folder").name == "label"
    assert catalog.find("other").id == "label"


def test_a_wrong_name_is_answered_with_near_ones(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf-tools")
    with pytest.raises(SkillNotFound) as caught:
        load(tmp_path).find("pdf-tool")
    assert caught.value.close == ("pdf-tools",)


def test_a_skill_for_people_only_is_listed_but_not_visible(tmp_path: Path) -> None:
    write_skill(tmp_path / "open")
    write_skill(tmp_path / "private", more="disable-model-invocation: true\n")
    catalog = load(tmp_path)
    assert names(catalog) == ["open", "private"]
    assert [skill.name for skill in catalog.visible] == ["open"]
    assert catalog.find("private").hidden


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills", "prompt-repository"])
def test_findings_are_located_and_name_their_skill(tmp_path: Path, profile: str) -> None:
    write_skill(tmp_path / "folder", "name", "x" * 1025)
    catalog = load(tmp_path, profile=profile)
    [found] = [f for f in all_findings(catalog) if f.code == "description-too-long"]
    assert found.path == str(tmp_path / "folder" / "SKILL.md")
    assert (found.skill, found.line) == ("name", 3)


def test_findings_that_a_profile_accepts_need_no_mention(tmp_path: Path) -> None:
    write_skill(tmp_path / "folder", "Label_1", more="unknown: field\n")
    assert codes(load(tmp_path, profile="local-skills")) == []
    assert codes(load(tmp_path)) == ["name-uppercase", "name-characters", "name-not-folder"]


def test_only_a_rejecting_finding_keeps_a_skill_out(tmp_path: Path) -> None:
    write_skill(tmp_path / "folder", "other")
    for profile in PROFILES:
        catalog = load(tmp_path, profile=profile)
        rejects = [one for one in catalog.findings if one.effect is Effect.REJECT]
        assert (len(catalog), len(catalog.rejected)) == ((0, 1) if rejects else (1, 0))


def test_what_the_specification_accepts_every_profile_loads(tmp_path: Path) -> None:
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
def test_a_skill_without_a_name(tmp_path: Path, profile: str, loads: list[tuple[str, str]]) -> None:
    write_skill(tmp_path / "folder", "null")
    catalog = load(tmp_path, profile=profile)
    assert [(skill.name, skill.description) for skill in catalog] == loads


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_skill_without_a_description(tmp_path: Path, profile: str) -> None:
    write_skill(tmp_path / "folder", description="")
    loads = [("folder", "folder")] if profile == "skill-import" else []
    catalog = load(tmp_path, profile=profile)
    assert [(skill.name, skill.description) for skill in catalog] == loads
    assert "description-missing" in codes_at(catalog, tmp_path / "folder")


def test_a_catalog_is_a_snapshot(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", description="Old.")
    catalog = load(tmp_path)
    write_skill(tmp_path / "pdf", description="New.")
    write_skill(tmp_path / "added")
    assert [skill.description for skill in catalog] == ["Old."]


def test_a_skill_is_read_as_it_is_at_that_moment(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", description="Old.")
    skill = load(tmp_path).find("pdf")
    (tmp_path / "pdf" / "SKILL.md").write_text(skill_text("pdf", "New."), encoding="utf-8")
    parsed = read_skill(skill, LENIENT)
    assert (parsed.frontmatter.description, parsed.body) == ("New.", "Do it.")


def test_a_skill_that_is_gone_is_not_found_when_it_is_read(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf")
    skill = load(tmp_path).find("pdf")
    shutil.rmtree(tmp_path / "pdf")
    with pytest.raises(SkillFileNotFound):
        read_skill(skill, LENIENT)
    with pytest.raises(SkillFileNotFound):
        open_skill_bundle(skill, LENIENT.scan_policy)


def test_the_files_of_a_skill_behind_a_link_are_those_of_the_real_one(tmp_path: Path) -> None:
    real = write_skill(tmp_path / ".store" / "pdf", "pdf")
    (real / "notes.txt").write_bytes(b"notes")
    (tmp_path / "pdf").symlink_to(".store/pdf")
    skill = load(tmp_path).find("pdf")
    assert list(open_skill_bundle(skill, LENIENT.scan_policy).files) == ["SKILL.md", "notes.txt"]
    assert read_skill_file(skill, "notes.txt") == b"notes"
    assert read_skill(skill, LENIENT).findings == ()


def test_profiles_are_known_by_name(tmp_path: Path) -> None:
    assert find_profile("lenient") is LENIENT
    with pytest.raises(UnknownProfile) as caught:
        load_catalog([], "strict", settings=settings_for(tmp_path))
    assert "lenient" in str(caught.value)


def test_a_catalog_remembers_its_roots_and_its_profile(tmp_path: Path) -> None:
    catalog = load(tmp_path / "one", tmp_path / "two")
    assert [root.path for root in catalog.roots] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert catalog.profile is LENIENT


def test_the_files_of_a_skill_whose_file_is_a_link_are_its_own(tmp_path: Path) -> None:
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


def test_a_flat_prompt_has_no_other_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(skill_text(name), encoding="utf-8")
    skill = load(tmp_path, profile="prompt-repository").find("one")
    files = open_skill_bundle(skill, PROFILES["prompt-repository"].scan_policy)
    assert list(files.files) == ["one.md"]


def test_a_flat_prompt_does_not_hand_out_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(skill_text("one"), encoding="utf-8")
    write_skill(tmp_path / "two")
    skill = load(tmp_path, profile="prompt-repository").find("one")
    with pytest.raises(SkillhallError):
        read_skill_file(skill, "two/SKILL.md")
