"""Folder handles: opening and reading below a root."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.fs.handles import (
    EntryKind,
    Folder,
    FolderHandle,
    is_inside,
    open_folder_at,
    open_root,
    read_below,
    read_file,
    subfolder_at,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath
from tests.support.trees import open_descriptors

UNSAFE = [
    "",
    ".",
    "..",
    "../secret",
    "a/../../secret",
    "a/..",
    "/etc/passwd",
    "\\server\\share",
    "C:/secret",
    "c:secret",
    "~/secret",
    "a\\b",
    "a//b",
    "a/",
    "file:///etc/passwd",
    "nul\0byte",
    "new\nline",
    "esc\x1b[2J",
    "\udcff",
    "CON",
    "aux.md",
    "a/LPT1.txt",
    "dot.",
    "...",
    "space ",
    "x" * 5000,
]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Folder]:
    """The open folder `root`, next to `secret`, which must not be read."""
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    opened = open_root(str(tmp_path / "root"))
    yield opened
    opened.close()


def read(root: Folder, path: str, at_most: int = 100) -> bytes:
    return read_below(root, RelativePath.parse(path), at_most)


@pytest.mark.parametrize("text", UNSAFE)
def test_unsafe_path_is_rejected(text: str) -> None:
    with pytest.raises(UnsafePath):
        RelativePath.parse(text)


@pytest.mark.parametrize("text", ["%2e%2e/secret", "$HOME/x", "-rf", "a b", "ünïcode.md"])
def test_odd_names_are_literal(root: Folder, tmp_path: Path, text: str) -> None:
    file = tmp_path / "root" / text
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"literal")
    assert read(root, text) == b"literal"


def test_nested_file_is_read(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    data = bytes(range(256))
    (tmp_path / "root" / "a" / "b" / "c.bin").write_bytes(data)
    assert read(root, "a/b/c.bin", 256) == data
    assert read(root, "./a/./b/c.bin", 256) == data


def test_missing_file_is_not_found(root: Folder) -> None:
    with pytest.raises(SkillFileNotFound):
        read(root, "absent")
    with pytest.raises(SkillFileNotFound):
        read(root, "absent/absent")


@pytest.mark.parametrize("target", ["../secret", "{outside}/secret", "inside", "link", "missing"])
def test_linked_file_is_rejected(root: Folder, tmp_path: Path, target: str) -> None:
    (tmp_path / "root" / "inside").write_bytes(b"inside")
    (tmp_path / "root" / "link").symlink_to(target.format(outside=tmp_path))
    with pytest.raises(UnsafePath):
        read(root, "link")


@pytest.mark.parametrize("target", ["..", "{outside}", "a", ".", "missing"])
@pytest.mark.parametrize("path", ["link/secret", "a/link/secret", "a/link/b/secret"])
def test_linked_folder_is_rejected(root: Folder, tmp_path: Path, target: str, path: str) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    link = tmp_path / "root" / path.partition("link")[0] / "link"
    link.symlink_to(target.format(outside=tmp_path))
    with pytest.raises(UnsafePath):
        read(root, path)


def test_rejection_does_not_reveal_target(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "there").symlink_to("../secret")
    (tmp_path / "root" / "nowhere").symlink_to("../absent")
    texts = set()
    for name in ("nowhere", "there"):
        with pytest.raises(UnsafePath) as caught:
            read(root, name)
        texts.add(str(caught.value).replace(name, "NAME"))
    assert len(texts) == 1
    assert "secret" not in texts.pop()


def test_file_in_place_of_folder_is_rejected(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "file").touch()
    with pytest.raises(UnsafePath):
        read(root, "file/x")


def test_folder_replaced_by_link_is_not_followed(root: Folder, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "a"
    folder.mkdir()
    (folder / "secret").write_bytes(b"mine")
    with subfolder_at(root, ["a"]) as held:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path)
        assert read_file(held, "secret", 100) == b"mine"
    with pytest.raises(UnsafePath):
        read(root, "a/secret")


def test_open_root_replaced_by_link_is_unaffected(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "file").write_bytes(b"mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_bytes(b"theirs")
    (tmp_path / "root").rename(tmp_path / "moved")
    (tmp_path / "root").symlink_to("other")
    assert read(root, "file") == b"mine"


def test_linked_root_is_resolved_once(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    (tmp_path / "root").symlink_to("first")
    opened = open_root(str(tmp_path / "root"))
    (tmp_path / "root").unlink()
    (tmp_path / "root").symlink_to("second")
    try:
        assert read(opened, "file") == b"first"
    finally:
        opened.close()


@pytest.mark.parametrize("size", [100, 101, 5000])
def test_file_beyond_limit_is_rejected(root: Folder, tmp_path: Path, size: int) -> None:
    (tmp_path / "root" / "file").write_bytes(b"x" * size)
    if size <= 100:
        assert len(read(root, "file", 100)) == size
        return
    with pytest.raises(TooLarge):
        read(root, "file", 100)


def test_huge_file_is_rejected_by_stat(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "file").touch()
    os.truncate(tmp_path / "root" / "file", 1 << 42)
    with pytest.raises(TooLarge):
        read(root, "file")


def test_file_with_hidden_size_is_limited() -> None:
    opened = open_root("/proc/self")
    try:
        with pytest.raises(TooLarge):
            read(opened, "environ", 3)
    finally:
        opened.close()


def test_folders_and_pipes_are_not_files(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "sub").mkdir()
    os.mkfifo(tmp_path / "root" / "pipe")
    for name in ("sub", "pipe"):
        with pytest.raises(NotAFile):
            read(root, name)


def test_rejected_reads_close_descriptors(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "big").write_bytes(b"x" * 101)
    (tmp_path / "root" / "a" / "b" / "link").symlink_to("big")
    before = open_descriptors()
    for path in ("a/b/big", "a/b/link", "a/b", "a/b/absent", "a/absent/x", "a/b/big/x"):
        with pytest.raises((TooLarge, UnsafePath, NotAFile, SkillFileNotFound)):
            read(root, path)
    assert open_descriptors() == before


@pytest.mark.parametrize("will_list", [False, True])
def test_folder_without_the_file_is_returned_open(
    root: Folder, tmp_path: Path, *, will_list: bool
) -> None:
    (tmp_path / "root" / "group" / "pdf").mkdir(parents=True)
    before = open_descriptors()
    folder = root.read_start_below("group", "SKILL.md", 10, will_list=will_list)
    assert isinstance(folder, Folder)
    for _ in range(2):
        assert folder.list_entries() == [("pdf", EntryKind.FOLDER)]
    folder.close()
    assert open_descriptors() == before


def test_folder_at_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "a" / "file").touch()
    (tmp_path / "root" / "link").symlink_to("a")
    with open_folder_at(FolderHandle(str(tmp_path / "root"), "a")) as folder:
        assert [name for name, _ in folder.list_entries()] == ["file"]
    with (
        pytest.raises(OSError, match=r"."),
        open_folder_at(FolderHandle(str(tmp_path / "root"), "link")),
    ):
        pass


def test_folder_handle_has_path_and_children() -> None:
    top = FolderHandle("/r")
    assert (top.path, top.name) == ("/r", "r")
    assert top.child("a").child("b") == FolderHandle("/r", "a/b")
    assert (top.child("a").child("b").path, top.child("a").child("b").name) == ("/r/a/b", "b")


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/r", "/r", True),
        ("/r/a", "/r", True),
        ("/root", "/r", False),
        ("/r-evil/a", "/r", False),
        ("/", "/r", False),
        ("/r", "/", True),
    ],
)
def test_is_inside_compares_path_components(path: str, root: str, *, expected: bool) -> None:
    assert is_inside(path, root) is expected
