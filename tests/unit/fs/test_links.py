"""Reading below a root through links."""

import os
from pathlib import Path

import pytest

from skillhall._internal.fs.links import MAX_LINKS, ContainedFile, read_contained_file
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath
from tests.support.trees import open_descriptors


class Refused(Exception):
    """Raised by `check_path` of a test."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, next to `secret`, which must not be read."""
    folder = tmp_path / "root"
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "docs" / "a.md").write_bytes(b"inside")
    (folder / "docs" / "deep" / "b.md").write_bytes(b"deep inside")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "root-sibling").mkdir()
    (tmp_path / "root-sibling" / "a.md").write_bytes(b"secret")
    return folder


def read(root: Path, path: str, at_most: int = 100) -> ContainedFile:
    return read_contained_file(str(root), RelativePath.parse(path), at_most)


def test_plain_path_is_read(root: Path) -> None:
    assert read(root, "docs/deep/b.md") == ("docs/deep/b.md", b"deep inside")


@pytest.mark.parametrize(
    ("link", "target", "asked"),
    [
        ("link.md", "docs/a.md", "link.md"),
        ("link.md", "./docs//a.md", "link.md"),
        ("docs/link.md", "a.md", "docs/link.md"),
        ("docs/deep/link.md", "../a.md", "docs/deep/link.md"),
        ("folder", "docs", "folder/a.md"),
        ("docs/up", "..", "docs/up/docs/a.md"),
        ("docs/deep/far", "../../docs", "docs/deep/far/a.md"),
    ],
)
def test_link_inside_root_is_followed(root: Path, link: str, target: str, asked: str) -> None:
    (root / link).symlink_to(target)
    assert read(root, asked) == ("docs/a.md", b"inside")


def test_parent_of_linked_folder_is_the_real_one(root: Path) -> None:
    (root / "b.md").write_bytes(b"top")
    (root / "short").symlink_to("docs/deep")
    (root / "link.md").symlink_to("short/../a.md")
    assert read(root, "link.md") == ("docs/a.md", b"inside")


def test_absolute_link_into_root_is_followed(root: Path) -> None:
    (root / "docs" / "link.md").symlink_to(root / "docs" / "a.md")
    assert read(root, "docs/link.md") == ("docs/a.md", b"inside")


def test_absolute_link_into_linked_root_is_followed(root: Path) -> None:
    (root.parent / "alias").symlink_to("root")
    (root / "real.md").symlink_to(root.resolve() / "docs" / "a.md")
    (root / "alias.md").symlink_to(root.parent / "alias" / "docs" / "a.md")
    for name in ("real.md", "alias.md"):
        assert read(root.parent / "alias", name).data == b"inside"


@pytest.mark.parametrize(
    "target",
    [
        "../secret",
        "../nothing",
        "docs/../../secret",
        "../root/docs/a.md",
        "/etc/passwd",
        "/nothing",
        "{root}-sibling/a.md",
        "{root}/../secret",
        "..",
    ],
)
def test_link_outside_root_is_rejected(root: Path, target: str) -> None:
    (root / "link.md").symlink_to(target.format(root=root))
    with pytest.raises(UnsafePath, match="outside the folder"):
        read(root, "link.md")


def test_too_many_links_are_rejected(root: Path) -> None:
    (root / "0.md").symlink_to("docs/a.md")
    for number in range(1, MAX_LINKS + 1):
        (root / f"{number}.md").symlink_to(f"{number - 1}.md")
    assert read(root, f"{MAX_LINKS - 1}.md").data == b"inside"
    with pytest.raises(UnsafePath):
        read(root, f"{MAX_LINKS}.md")


def test_link_cycle_is_rejected(root: Path) -> None:
    (root / "a.md").symlink_to("b.md")
    (root / "b.md").symlink_to("a.md")
    with pytest.raises(UnsafePath):
        read(root, "a.md")


@pytest.mark.parametrize("path", ["no.md", "docs/a.md/b.md", "dangling.md", "x" * 300 + ".md"])
def test_missing_file_is_not_found(root: Path, path: str) -> None:
    (root / "dangling.md").symlink_to("docs/no.md")
    with pytest.raises(SkillFileNotFound):
        read(root, path)


def test_missing_root_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SkillFileNotFound):
        read(tmp_path / "none", "a.md")


@pytest.mark.parametrize("path", ["docs", "pipe", "to-pipe", "to-folder", "to-top"])
def test_folders_and_pipes_are_not_files(root: Path, path: str) -> None:
    os.mkfifo(root / "pipe")
    (root / "to-pipe").symlink_to("pipe")
    (root / "to-folder").symlink_to("docs")
    (root / "to-top").symlink_to("docs/..")
    with pytest.raises(NotAFile):
        read(root, path)


def test_size_limit_applies_to_linked_file(root: Path) -> None:
    (root / "link.md").symlink_to("docs/a.md")
    assert read(root, "link.md", at_most=6).data == b"inside"
    with pytest.raises(TooLarge):
        read(root, "link.md", at_most=5)


def test_check_path_gets_every_real_path(root: Path) -> None:
    (root / "short").symlink_to("docs/deep")
    calls: list[str] = []
    read_contained_file(str(root), RelativePath.parse("short/b.md"), 100, calls.append)
    assert calls == ["short", "docs", "docs/deep", "docs/deep/b.md"]


def test_check_path_applies_to_links(root: Path) -> None:
    os.mkfifo(root / "docs" / "private")
    (root / "link.md").symlink_to("docs/private")

    def admit(path: str) -> None:
        if path == "docs/private":
            raise Refused

    with pytest.raises(Refused):
        read_contained_file(str(root), RelativePath.parse("link.md"), 100, admit)


def test_descriptors_are_closed(root: Path) -> None:
    (root / "out.md").symlink_to("../secret")
    (root / "up.md").symlink_to("docs/deep/../a.md")
    before = open_descriptors()
    read(root, "up.md")
    for path in ("out.md", "docs/deep/no.md", "docs/deep"):
        with pytest.raises((UnsafePath, SkillFileNotFound, NotAFile)):
            read(root, path)
    assert open_descriptors() == before
