"""Contract of `Folder`, for its implementations by handle and by path."""

import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from skillhall._internal.fs.handles import (
    HAS_HANDLES,
    EntryKind,
    Folder,
    open_root,
)
from skillhall.errors import NotAFile
from tests.support.trees import open_descriptors

Opener: TypeAlias = Callable[[Path], Folder]


def by_handle(path: Path) -> Folder:
    if not HAS_HANDLES:
        pytest.skip("this system has no folder handles")
    return Folder(os.open(path, os.O_RDONLY))


def by_path(path: Path) -> Folder:
    return Folder(None, str(path))


@pytest.fixture(params=[by_handle, by_path, lambda path: open_root(str(path))])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    opener: Opener = request.param
    opened = opener(tmp_path)
    yield opened
    opened.close()


def test_empty_folder_has_no_entries(folder: Folder) -> None:
    assert folder.list_entries() == []


def test_list_entries_does_not_follow_links(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "to-file").symlink_to("file")
    (tmp_path / "to-folder").symlink_to("sub")
    (tmp_path / "nowhere").symlink_to("missing")
    os.mkfifo(tmp_path / "pipe")
    assert sorted(folder.list_entries()) == [
        ("file", EntryKind.FILE),
        ("nowhere", EntryKind.LINK),
        ("pipe", EntryKind.OTHER),
        ("sub", EntryKind.FOLDER),
        ("to-file", EntryKind.LINK),
        ("to-folder", EntryKind.LINK),
    ]


def test_list_entries_can_be_called_twice(folder: Folder, tmp_path: Path) -> None:
    first = folder.list_entries()
    (tmp_path / "later").touch()
    assert first == []
    assert folder.list_entries() == [("later", EntryKind.FILE)]


def test_non_utf8_name_is_listed(folder: Folder, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    assert folder.list_entries() == [("\udcff", EntryKind.FILE)]


def test_subfolder_opens_and_lists(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "sub" / "deeper").mkdir(parents=True)
    below = folder.open_folder("sub")
    try:
        assert below.list_entries() == [("deeper", EntryKind.FOLDER)]
    finally:
        below.close()


def test_open_file_returns_stat(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"four")
    descriptor, stat = folder.open_file("file")
    try:
        assert os.read(descriptor, 100) == b"four"
        assert stat.st_size == 4
    finally:
        os.close(descriptor)


def test_stat_of_nested_path_is_returned(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "file"
    file.write_bytes(b"seven b")
    assert folder.stat("sub/file") == file.lstat()


def test_stat_does_not_follow_links(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "link").symlink_to("file")
    assert folder.stat("link") == (tmp_path / "link").lstat()


def test_same_folder_has_same_identity(folder: Folder, tmp_path: Path) -> None:
    again, other = by_path(tmp_path), by_path(tmp_path.parent)
    assert folder.device_and_inode() == again.device_and_inode()
    assert folder.device_and_inode() != other.device_and_inode()


@pytest.mark.parametrize("name", ["absent", "sub/absent"])
def test_missing_entries_are_not_found(folder: Folder, tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    for ask in (folder.open_file, folder.open_folder, folder.stat):
        with pytest.raises(FileNotFoundError):
            ask(name)


def test_link_is_not_opened_as_folder(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    with pytest.raises(OSError, match=r"."):
        folder.open_folder("link")


@pytest.mark.parametrize("target", ["file", "missing", "link"])
def test_link_is_not_opened_as_file(folder: Folder, tmp_path: Path, target: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError, match=r".") as caught:
        folder.open_file("link")
    assert caught.value.errno == errno.ELOOP


def test_file_is_not_opened_as_folder(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        folder.open_folder("file")


def test_folder_is_not_opened_as_file(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(NotAFile):
        folder.open_file("sub")


def test_pipe_is_rejected_without_blocking(folder: Folder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotAFile):
        folder.open_file("pipe")


def test_socket_is_rejected(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # socket paths have a length limit
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    with pytest.raises((OSError, NotAFile)):
        folder.open_file("socket")


def test_descriptors_are_closed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    os.mkfifo(tmp_path / "pipe")
    before = open_descriptors()
    folder.list_entries()
    folder.open_folder("sub").close()
    for name in ("sub", "link", "pipe", "absent"):
        with pytest.raises((OSError, NotAFile)):
            folder.open_file(name)
    with pytest.raises(OSError, match=r"."):
        folder.open_folder("link")
    assert open_descriptors() == before


def test_read_link_returns_target(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("../some/where")
    assert folder.read_link("link") == "../some/where"


def test_read_link_of_file_raises(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "sub").mkdir()
    for name in ("file", "sub", "absent"):
        with pytest.raises(OSError, match=r"."):
            folder.read_link(name)
