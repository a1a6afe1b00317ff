"""Plain folders, read into memory: only regular files, and folders of them.

This is a fast path for validating thousands of skills, with the same result as `read_bundle`. Any
other folder is left to `bundle_reader`.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import (
    EntryKind,
    Folder,
    FolderHandle,
    open_root,
    read_descriptor,
)
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.sources.folder.bundle_reader import EXECUTABLE, MAX_FILES, is_ignored
from skillhall._internal.sources.folder.candidate import to_signature
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

_MAX_DEPTH = 8  # folders inside a skill
_FILE, _FOLDER = EntryKind.FILE, EntryKind.FOLDER  # globals are faster than attributes


def read_plain_bundles(
    locations: Sequence[FolderHandle | None], max_bytes: int
) -> Iterator[Bundle | None]:
    """Read folders with regular files into memory; yield `None` for any other folder.

    Those are folders with links or hidden files, or with more than `max_bytes`. Folders with the
    same parent should follow one another: the parent is opened only once.
    """
    with _ParentFolders() as parents:
        for location in locations:
            yield None if location is None else _read_bundle(location, parents, max_bytes)


def _read_bundle(location: FolderHandle, parents: _ParentFolders, max_bytes: int) -> Bundle | None:
    try:
        with parents.open_folder(location) as folder:
            reader = _PlainReader(max_bytes)
            if not reader.read_folder(folder, "", 0):
                return None
            # A folder that was replaced may have lost files while they were listed. Also, a folder
            # above may have been replaced since it was opened for another skill.
            found, opened = os.lstat(location.path), folder.status()
            if found.st_ino != opened.st_ino or found.st_dev != opened.st_dev:
                return None
    except (OSError, SkillhallError):
        return None
    files = reader.files
    return Bundle(location.path, files if reader.is_flat else dict(sorted(files.items())))


class _ParentFolders:
    """The open folders from a root down to the parent of the last location."""

    def __init__(self) -> None:
        self._root = ""
        self._names: list[str] = []
        self._folders: list[Folder] = []  # the root, and one for each name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close(0)

    def open_folder(self, location: FolderHandle) -> Folder:
        """Open a folder so that it can be listed; links are rejected. Raises: OSError."""
        if not location.relative_path:
            return open_root(location.root)
        *names, name = location.relative_path.split("/")
        if self._root != location.root or not self._folders:
            self._close(0)
            self._folders.append(open_root(location.root))
            self._root = location.root
        if names != self._names:
            shared = 0
            for known, other in zip(self._names, names, strict=False):
                if known != other:
                    break
                shared += 1
            self._close(shared + 1)
            for part in names[shared:]:
                self._folders.append(self._folders[-1].open_folder(part))
                self._names.append(part)
        return self._folders[-1].open_listable(name)

    def _close(self, count: int) -> None:
        while len(self._folders) > count:
            self._folders.pop().close()
        del self._names[max(0, count - 1) :]


class _PlainReader:
    """Reads all files of one folder, up to a number of bytes."""

    __slots__ = ("files", "is_flat", "remaining")

    def __init__(self, max_bytes: int) -> None:
        self.files: dict[str, SkillFile] = {}
        self.remaining = max_bytes
        self.is_flat = True  # without subfolders, so that the files are sorted

    def read_folder(self, folder: Folder, prefix: str, depth: int) -> bool:
        """Read an open folder; false if it is not plain. Raises: OSError, SkillhallError."""
        entries = folder.list_entries()
        entries.sort()
        if len(entries) + len(self.files) > MAX_FILES or depth > _MAX_DEPTH:
            return False
        for name, kind in entries:
            if name[0] == "." or is_ignored(name):
                return False
            if kind is _FILE:
                if not self._read_file(folder, name, f"{prefix}{name}"):
                    return False
            elif kind is _FOLDER:
                self.is_flat = False
                with folder.open_listable(name) as subfolder:
                    if not self.read_folder(subfolder, f"{prefix}{name}/", depth + 1):
                        return False
            else:
                return False
        return True

    def _read_file(self, folder: Folder, name: str, path: str) -> bool:
        descriptor, stat = folder.open_file(name)
        try:
            size = stat.st_size
            if size > self.remaining:
                return False
            data = read_descriptor(descriptor, self.remaining, name, size)
        finally:
            os.close(descriptor)
        self.remaining -= len(data)
        self.files[path] = SkillFile(
            RelativePath.parse(path),
            len(data),
            bool(stat.st_mode & EXECUTABLE),
            partial(bytes, data),
            to_signature(stat),
        )
        return True
