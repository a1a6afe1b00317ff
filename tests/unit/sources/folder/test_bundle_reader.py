"""Bundles of folders: files listed within limits and read on demand."""

import hashlib
import os
from pathlib import Path

import pytest

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.bundle import Bundle, RelativePath
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE_SIZE,
    MAX_FILES,
    open_bundle,
    read_bundle,
    read_file_at,
)
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath
from tests.support.trees import open_descriptors, ordinary_user, write_skill


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return write_skill(tmp_path / "skill")


def bundle(folder: Path, policy: ScanPolicy | None = None) -> Bundle:
    return open_bundle(FolderHandle(str(folder.parent), folder.name), policy or ScanPolicy())


def codes(opened: Bundle) -> list[tuple[str, str]]:
    return [(str(result.code), result.path) for result in opened.findings]


def write(folder: Path, path: str, data: bytes = b"x") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_bundle_has_all_files_in_path_order(skill: Path) -> None:
    for path in ("scripts/run.py", "b.txt", "a/deep/er.txt", "Z.txt", "a.txt"):
        write(skill, path)
    opened = bundle(skill)
    assert list(opened.files) == [
        "SKILL.md",
        "Z.txt",
        "a.txt",
        "a/deep/er.txt",
        "b.txt",
        "scripts/run.py",
    ]
    assert opened.findings == ()


def test_resources_are_all_files_except_skill_md(skill: Path) -> None:
    write(skill, "a.txt")
    write(skill, "nested/SKILL.md")
    assert [str(file.path) for file in bundle(skill).resources()] == ["a.txt", "nested/SKILL.md"]


def test_file_bytes_are_unchanged(skill: Path) -> None:
    data = bytes(range(256)) * 300 + b"\r\n\xef\xbb\xbf"
    write(skill, "image.png", data)
    file = bundle(skill).get_file(RelativePath.parse("image.png"))
    assert file.read() == data
    assert file.size == len(data)


def test_digest_is_sha256_of_bytes(skill: Path) -> None:
    write(skill, "empty", b"")
    write(skill, "data", b"\0\xff")
    files = bundle(skill).files
    assert files["empty"].digest() == f"sha256:{hashlib.sha256(b'').hexdigest()}"
    assert files["data"].digest() == f"sha256:{hashlib.sha256(bytes([0, 255])).hexdigest()}"


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o755, True), (0o700, True), (0o644, False), (0o655, False)]
)
def test_file_is_executable_by_owner_bit(skill: Path, mode: int, *, expected: bool) -> None:
    write(skill, "run.sh").chmod(mode)
    assert bundle(skill).files["run.sh"].executable is expected


def test_file_is_read_on_demand(skill: Path) -> None:
    write(skill, "a.txt", b"old")
    file = bundle(skill).files["a.txt"]
    write(skill, "a.txt", b"new")
    assert file.read() == b"new"


def test_deleted_file_is_not_found(skill: Path) -> None:
    write(skill, "a.txt")
    file = bundle(skill).files["a.txt"]
    (skill / "a.txt").unlink()
    with pytest.raises(SkillFileNotFound):
        file.read()


def test_file_replaced_by_link_is_rejected(skill: Path, tmp_path: Path) -> None:
    write(tmp_path, "secret", b"secret")
    write(skill, "a.txt")
    file = bundle(skill).files["a.txt"]
    (skill / "a.txt").unlink()
    (skill / "a.txt").symlink_to("../secret")
    with pytest.raises(UnsafePath):
        file.read()


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize(
    "path", [".git/config", "__MACOSX/a.txt", ".DS_Store", "._a.txt", "sub/.svn/x", "sub/._b"]
)
def test_metadata_files_are_dropped_under_every_profile(
    skill: Path, profile: str, path: str
) -> None:
    write(skill, path)
    assert list(bundle(skill, PROFILES[profile].scan_policy).files) == ["SKILL.md"]


def test_file_with_similar_name_is_kept(skill: Path) -> None:
    write(skill, "git")
    write(skill, "_a.txt")
    assert list(bundle(skill).files) == ["SKILL.md", "_a.txt", "git"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_hidden_files_depend_on_profile(skill: Path, profile: str) -> None:
    write(skill, ".config/x")
    write(skill, ".hidden")
    hidden = [".config/x", ".hidden"] if profile == "skills-module" else []
    assert list(bundle(skill, PROFILES[profile].scan_policy).files) == [*hidden, "SKILL.md"]


@pytest.mark.parametrize("name", [".GIT", "git~1", ".Hg", "\u200c.git"])
def test_version_control_folder_of_another_system_is_never_part(skill: Path, name: str) -> None:
    write(skill, f"{name}/config")
    assert list(bundle(skill, ScanPolicy().with_hidden_files).files) == ["SKILL.md"]


def test_hidden_files_never_use_up_the_limits(skill: Path) -> None:
    for number in range(MAX_FILES):
        write(skill, f".cache/{number}")
    write(skill, "z/last.md")
    opened = bundle(skill, ScanPolicy().with_hidden_files)
    assert len(opened.files) == MAX_FILES
    assert {"SKILL.md", "z/last.md"} < opened.files.keys()
    assert codes(opened) == [("too-many-files", ".cache/998")]


@pytest.mark.parametrize("target", ["SKILL.md", "../other", "..", "missing", "/etc/hostname"])
def test_link_is_skipped_with_finding(skill: Path, tmp_path: Path, target: str) -> None:
    write(tmp_path, "other")
    (skill / "link").symlink_to(target)
    opened = bundle(skill)
    assert list(opened.files) == ["SKILL.md"]
    assert codes(opened) == [("file-left-out", "link")]


def test_nested_link_is_reported_with_path(skill: Path) -> None:
    (skill / "a" / "b").mkdir(parents=True)
    (skill / "a" / "b" / "loop").symlink_to("../..")
    assert codes(bundle(skill)) == [("file-left-out", "a/b/loop")]


def test_pipe_is_skipped_with_finding(skill: Path) -> None:
    os.mkfifo(skill / "pipe")
    assert codes(bundle(skill)) == [("file-left-out", "pipe")]


@pytest.mark.parametrize("name", ["new\nline", "esc\x1b", "a:b", "a\\b", "CON", "dot.", "x "])
def test_unsafe_name_is_skipped_and_escaped(skill: Path, name: str) -> None:
    write(skill, name)
    opened = bundle(skill)
    assert list(opened.files) == ["SKILL.md"]
    [finding] = opened.findings
    assert finding.code == "file-left-out"
    assert finding.message.isprintable()


def test_non_utf8_name_is_skipped_and_escaped(skill: Path) -> None:
    Path(os.fsdecode(os.fsencode(skill) + b"/bad\xff")).touch()
    [finding] = bundle(skill).findings
    assert finding.code == "file-left-out"
    assert "".join(finding[1:2] + finding[4:5]).isascii()


def test_unsafe_folder_name_gives_one_finding(skill: Path) -> None:
    write(skill, "a:b/one")
    write(skill, "a:b/two")
    assert codes(bundle(skill)) == [("file-left-out", "")]


def test_file_beyond_size_limit_is_skipped(skill: Path) -> None:
    for name, size in (("fits", MAX_FILE_SIZE), ("large", MAX_FILE_SIZE + 1)):
        write(skill, name)
        os.truncate(skill / name, size)
    opened = bundle(skill)
    assert list(opened.files) == ["SKILL.md", "fits"]
    assert codes(opened) == [("file-too-large", "large")]


def test_file_that_grew_beyond_limit_is_rejected(skill: Path) -> None:
    write(skill, "file")
    file = bundle(skill).files["file"]
    os.truncate(skill / "file", MAX_FILE_SIZE + 1)
    with pytest.raises(TooLarge):
        file.read()


def test_file_limit_is_reported_once(skill: Path) -> None:
    for number in range(MAX_FILES - 1):
        (skill / f"{number:05}").touch()
    full = bundle(skill)
    for name in ("x", "y", "z"):
        (skill / name).touch()
    overfull = bundle(skill)
    assert len(full.files) == len(overfull.files) == MAX_FILES
    assert codes(full) == []
    assert codes(overfull) == [("too-many-files", "")]


def test_folder_beyond_depth_limit_is_reported(skill: Path) -> None:
    deep = skill.joinpath(*["d"] * MAX_DEPTH)
    write(deep, "seen")
    write(deep, "d/unseen")
    opened = bundle(skill)
    path = "/".join(["d"] * MAX_DEPTH)
    assert list(opened.files) == ["SKILL.md", f"{path}/seen"]
    assert codes(opened) == [("file-left-out", f"{path}/d")]


def test_unreadable_folder_is_skipped() -> None:
    with ordinary_user() as home:
        skill = write_skill(home / "skill")
        write(skill, "closed/x").parent.chmod(0)
        write(skill, "open/y")
        opened = bundle(skill)
    assert list(opened.files) == ["SKILL.md", "open/y"]
    assert codes(opened) == [("file-left-out", "closed")]


def test_open_bundle_of_missing_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SkillFileNotFound):
        bundle(tmp_path / "absent")
    with pytest.raises(SkillFileNotFound):
        bundle(write(tmp_path, "file"))


def test_linked_folder_is_not_opened(skill: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("skill")
    with pytest.raises(SkillFileNotFound):
        bundle(tmp_path / "link")


def test_read_file_at_returns_bytes(skill: Path) -> None:
    write(skill, "a/b.txt", b"here")
    location = FolderHandle(str(skill.parent), "skill")
    assert read_file_at(location, RelativePath.parse("a/b.txt")) == b"here"


def test_read_file_at_rejects_links_and_folders(skill: Path) -> None:
    (skill / "sub").mkdir()
    location = FolderHandle(str(skill.parent), "skill")
    with pytest.raises(NotAFile):
        read_file_at(location, RelativePath.parse("sub"))
    with pytest.raises(TooLarge):
        read_file_at(location, RelativePath.parse("SKILL.md"), 3)
    with pytest.raises(SkillFileNotFound):
        read_file_at(location.child("absent"), RelativePath.parse("SKILL.md"))


def test_listing_and_reading_close_descriptors(skill: Path) -> None:
    write(skill, "a/b/c")
    (skill / "link").symlink_to("a")
    before = open_descriptors()
    for file in bundle(skill).files.values():
        file.read()
    with pytest.raises(SkillFileNotFound):
        bundle(skill / "absent")
    assert open_descriptors() == before


def test_total_size_limit_is_reported(skill: Path) -> None:
    for number in range(11):
        write(skill, str(number))
        os.truncate(skill / str(number), MAX_FILE_SIZE)
    opened = bundle(skill)
    assert sum(file.size for file in opened.files.values()) <= 100 * 1024 * 1024
    assert opened.findings != ()


def test_replaced_folder_gives_no_file_of_new_one(skill: Path) -> None:
    opened = bundle(skill)
    skill.rename(skill.with_name("old"))
    write_skill(skill)
    with pytest.raises(SkillFileNotFound):
        opened.files["SKILL.md"].read()
    assert bundle(skill).files["SKILL.md"].read()


def test_bundle_in_memory_keeps_its_bytes(skill: Path) -> None:
    write(skill, "a.txt", b"old")
    opened = read_bundle(FolderHandle(str(skill.parent), skill.name), ScanPolicy())
    write(skill, "a.txt", b"newer")
    assert (opened.files["a.txt"].read(), opened.files["a.txt"].size) == (b"old", 3)


def test_read_bundle_of_missing_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SkillFileNotFound):
        read_bundle(FolderHandle(str(tmp_path), "none"), ScanPolicy())
