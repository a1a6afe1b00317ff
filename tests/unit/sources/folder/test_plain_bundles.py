"""Plain folders are read into memory with the same result as any other folder."""

from pathlib import Path

import pytest

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.sources.folder.bundle_reader import read_bundle
from skillhall._internal.sources.folder.plain_bundles import read_plain_bundles
from tests.support.trees import open_descriptors, write_skill


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return write_skill(tmp_path / "skill")


def write(folder: Path, path: str, data: bytes = b"x") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def read_plain(folder: Path, max_bytes: int = 1_000_000) -> Bundle | None:
    (bundle,) = read_plain_bundles([FolderHandle(str(folder))], max_bytes)
    return bundle


def assert_equal(plain: Bundle | None, complete: Bundle) -> None:
    assert plain is not None
    assert [*plain.files] == [*complete.files]
    for file, expected in zip(plain.files.values(), complete.files.values(), strict=True):
        assert file._replace(read=expected.read) == expected
        assert file.read() == expected.read()


def test_plain_folder_is_read_like_any_other(skill: Path) -> None:
    for path in ("b.txt", "scripts/run.py", "a/deep/er.txt", "a.txt", "a-b.txt"):
        write(skill, path, path.encode())
    write(skill, "a.sh").chmod(0o755)
    (skill / "empty").mkdir()
    location = FolderHandle(str(skill.parent), skill.name)
    (plain,) = read_plain_bundles([location], 1000)
    assert_equal(plain, read_bundle(location, ScanPolicy()))


def test_folders_with_the_same_parents_are_read_like_each_on_its_own(tmp_path: Path) -> None:
    paths = ["a/skills/x", "a/skills/y", "a/z", "b/skills/x", "top"]
    for path in paths:
        write(write_skill(tmp_path / path), "notes.md", path.encode())
    locations = [FolderHandle(str(tmp_path), path) for path in paths]
    locations.append(FolderHandle(str(tmp_path / "b"), "skills/x"))
    before = open_descriptors()
    bundles = [*read_plain_bundles(locations, 1000)]
    assert open_descriptors() == before
    for location, plain in zip(locations, bundles, strict=True):
        assert_equal(plain, read_bundle(location, ScanPolicy()))


def test_skill_is_not_plain_if_its_parent_was_replaced_since_the_one_before(
    tmp_path: Path,
) -> None:
    for name in ("x", "y"):
        write_skill(tmp_path / "skills" / name)
    locations = [FolderHandle(str(tmp_path), f"skills/{name}") for name in ("x", "y")]
    bundles = read_plain_bundles(locations, 1000)
    assert next(bundles) is not None
    (tmp_path / "skills").rename(tmp_path / "old")
    write_skill(tmp_path / "skills" / "y")
    assert next(bundles) is None


@pytest.mark.parametrize(
    "path",
    [".env", "._x", "a/.env", "a/.git/config", ".DS_Store", "bad:name", "a/b/c/d/e/f/g/h/i/j"],
)
def test_other_folders_are_not_plain(path: str, skill: Path) -> None:
    write(skill, path)
    assert read_plain(skill) is None


def test_plain_folder_is_small(skill: Path) -> None:
    size = write(skill, "a/a.txt").stat().st_size + (skill / "SKILL.md").stat().st_size
    assert read_plain(skill, size) is not None
    assert read_plain(skill, size - 1) is None


def test_links_and_missing_folders_are_not_plain(skill: Path) -> None:
    assert read_plain(skill / "gone") is None
    (skill / "a").mkdir()
    (skill / "a/link").symlink_to("../SKILL.md")
    assert read_plain(skill) is None


def test_link_to_a_folder_is_not_plain(skill: Path, tmp_path: Path) -> None:
    write(tmp_path, "secrets/key")
    (skill / "a").symlink_to(tmp_path / "secrets")
    assert read_plain(skill) is None
