"""Symlink races: another process swaps folders, files and links while we read."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.skill_content import open_skill_bundle, read_skill, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.policy.profiles import LENIENT, PROFILES
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SkillhallError
from tests.support.trees import (
    all_findings,
    build_head_cache,
    codes,
    load,
    names,
    open_descriptors,
    run_in_background,
    write_skill,
)

SECONDS = 1.0
SWAP_FOLDER = """
os.rename(arguments[0], arguments[0] + ".aside")
os.symlink(arguments[1], arguments[0])
os.unlink(arguments[0])
os.rename(arguments[0] + ".aside", arguments[0])
"""
SWAP_LINK = """
for target in arguments[1:]:
    os.symlink(target, arguments[0] + ".new")
    os.rename(arguments[0] + ".new", arguments[0])
"""
APPEAR = """
os.rename(arguments[0] + "/SKILL.md", arguments[0] + "/aside")
os.rename(arguments[0] + "/aside", arguments[0] + "/SKILL.md")
"""
VANISH = """
for number in range(100):
    os.symlink(arguments[1], arguments[0] + str(number))
for number in range(100):
    os.unlink(arguments[0] + str(number))
"""
COME_AND_GO = """
os.makedirs(arguments[0])
with open(arguments[0] + "/new", "w") as file:
    file.write(arguments[1])
os.rename(arguments[0] + "/new", arguments[0] + "/SKILL.md")
shutil.rmtree(arguments[0])
"""


def rounds() -> Iterator[None]:
    """Yield rounds until the time is over."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_skill(tmp_path / "root" / "group" / "pdf", "pdf", "Inside.")
    (tmp_path / "root" / "group" / "pdf" / "notes.txt").write_bytes(b"inside")
    write_skill(tmp_path / "root" / "steady")
    return tmp_path / "root"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A copy of `root/group` outside the root, which must not be shown."""
    write_skill(tmp_path / "outside" / "pdf", "pdf", "SECRET")
    (tmp_path / "outside" / "pdf" / "notes.txt").write_bytes(b"SECRET")
    return tmp_path / "outside"


def everything_said(catalog: Catalog) -> str:
    skills = [(skill.description, skill.frontmatter) for skill in catalog]
    return f"{skills} {catalog.rejected} {all_findings(catalog)}"


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills"])
def test_folder_swapped_for_link_does_not_leak(root: Path, outside: Path, profile: str) -> None:
    with run_in_background(SWAP_FOLDER, root / "group", outside):
        for _ in rounds():
            catalog = load(root, profile=profile)
            assert "SECRET" not in everything_said(catalog)
            assert "steady" in names(catalog)


def test_swapped_folder_does_not_leak_with_head_cache(
    root: Path, outside: Path, tmp_path: Path
) -> None:
    build_head_cache(tmp_path / "cache", root)
    with run_in_background(SWAP_FOLDER, root / "group" / "pdf", outside / "pdf"):
        for _ in rounds():
            catalog = load(root, cache=tmp_path / "cache")
            assert "SECRET" not in everything_said(catalog)
            assert "steady" in names(catalog)


def test_link_turned_outwards_does_not_leak(root: Path, outside: Path) -> None:
    link = root / "link"
    link.symlink_to(root / "group")
    with run_in_background(SWAP_LINK, link, outside, root / "group"):
        for _ in rounds():
            assert "SECRET" not in everything_said(load(root))


def test_skill_md_swapped_for_link_does_not_leak(root: Path, outside: Path) -> None:
    file = root / "group" / "pdf" / "SKILL.md"
    with run_in_background(SWAP_FOLDER, file, outside / "pdf" / "SKILL.md"):
        for _ in rounds():
            assert "SECRET" not in everything_said(load(root))


def test_read_below_never_leaves_root(root: Path, outside: Path) -> None:
    path = RelativePath.parse("group/pdf/notes.txt")
    folder = open_root(str(root))
    before = open_descriptors()
    with run_in_background(SWAP_FOLDER, root / "group", outside):
        inside = open_descriptors()
        for _ in rounds():
            try:
                assert read_below(folder, path, 100) == b"inside"
            except SkillhallError:
                continue
        assert open_descriptors() == inside
    assert open_descriptors() == before
    folder.close()


def test_reading_catalog_skill_never_leaves_root(root: Path, outside: Path) -> None:
    skill = load(root).find("pdf")
    with run_in_background(SWAP_FOLDER, root / "group", outside):
        for _ in rounds():
            try:
                assert read_skill(skill, LENIENT).frontmatter.description == "Inside."
                assert read_skill_file(ClearedSkill(skill), "notes.txt") == b"inside"
                for file in open_skill_bundle(skill, LENIENT.scan_policy).files.values():
                    assert b"SECRET" not in file.read()
            except SkillhallError:
                continue


def test_disappearing_skill_does_not_affect_others(root: Path) -> None:
    text = "---\nname: guest\ndescription: Comes and goes.\n---\n"
    with run_in_background(COME_AND_GO, root / "guest", text):
        for _ in rounds():
            catalog = load(root)
            assert set(names(catalog)) - {"guest"} == {"pdf", "steady"}
            assert len([f for f in all_findings(catalog) if "guest" in f.path]) <= 1


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_skill_never_serves_files_of_sibling(root: Path, outside: Path, profile: str) -> None:
    (root / "steady" / "link").symlink_to(outside / "pdf" / "notes.txt")
    (root / "steady" / "folder").symlink_to(outside)
    skill = load(root, profile=profile).find("steady")
    for path in ("link", "folder/pdf/notes.txt", "../group/pdf/notes.txt", str(outside)):
        with pytest.raises(SkillhallError):
            read_skill_file(ClearedSkill(skill), path)


def test_skill_md_created_during_scan_is_not_a_variant(root: Path) -> None:
    with run_in_background(APPEAR, root / "steady"):
        for _ in rounds():
            assert "case-variant" not in codes(load(root))


def test_disappearing_links_do_not_abort_scan(root: Path) -> None:
    with run_in_background(VANISH, root / "link", root / "group" / "pdf"):
        for _ in rounds():
            assert names(load(root)) == ["pdf", "steady"]
