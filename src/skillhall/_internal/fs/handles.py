"""Access to files and folders below a root, never through a symbolic link.

Checking a path before opening it is a race: a folder can be replaced by a link in between. A handle
cannot be replaced, so each path component is opened relative to the handle of its parent folder.
On systems without such calls (Windows), the same methods use paths and check them before each use.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from skillhall._internal.fs.kubernetes_volumes import (
    MAX_VOLUME_ATTEMPTS,
    is_volume_link,
    open_volume,
    read_volume_version,
)
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX, VOLUME_LINK
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.skill.bundle import RelativePath

REPLACED_PREFIX = f"{STAGING_PREFIX}old-"  # followed by the name of the folder being replaced
HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# O_PATH handles need no read permission and are cheaper; they can only be traversed.
_TRAVERSE_FLAGS = getattr(os, "O_PATH", 0) | _FOLDER_FLAGS
# O_NONBLOCK: opening a named pipe called SKILL.md would otherwise wait for a writer.
_FILE_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_T = TypeVar("_T")


class EntryKind(StrEnum):
    """Kind of a directory entry; links are not followed."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


_FOLDER_KIND = EntryKind.FOLDER


class OpenedFile(NamedTuple):
    """An open regular file; the caller closes `descriptor`."""

    descriptor: int
    stat: os.stat_result


class Folder(Protocol):
    """Open folder. Every `name` is a single path component."""

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Return names and kinds, unordered. Raises: OSError."""

    def open_folder(self, name: str) -> Folder:
        """Open the folder `name`; links are rejected. Raises: OSError."""

    def open_file(self, name: str) -> OpenedFile:
        """Open the regular file `name`; links are rejected. Raises: OSError, NotAFile."""

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of `path`. Use it to detect changes only. Raises: OSError."""

    def read_link(self, name: str) -> str:
        """Return the target of the link `name`. Raises: OSError, also if it is not a link."""

    def device_and_inode(self) -> tuple[int, int]:
        """Return device and inode. Raises: OSError."""

    def close(self) -> None:
        """Close the handle."""


class DescriptorFolder:
    """A folder behind a file descriptor."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Return names and kinds, unordered. Raises: OSError."""
        readable = os.open(".", os.O_RDONLY | _FOLDER_FLAGS, dir_fd=self._descriptor)
        try:
            with os.scandir(readable) as entries:
                # Large collections consist almost only of folders, so they skip the function call.
                return [
                    (e.name, _FOLDER_KIND if e.is_dir(follow_symlinks=False) else to_entry_kind(e))
                    for e in entries
                ]
        finally:
            os.close(readable)

    def open_folder(self, name: str) -> DescriptorFolder:
        """Open the folder `name`; links are rejected. Raises: OSError."""
        try:
            return DescriptorFolder(os.open(name, _TRAVERSE_FLAGS, dir_fd=self._descriptor))
        except FileNotFoundError:
            return DescriptorFolder(_open_during_replacement(name, self._open_name))

    def _open_name(self, name: str) -> int:
        return os.open(name, _TRAVERSE_FLAGS, dir_fd=self._descriptor)

    def open_file(self, name: str) -> OpenedFile:
        """Open the regular file `name`; links are rejected. Raises: OSError, NotAFile."""
        try:
            descriptor = os.open(name, _FILE_FLAGS, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket, or a pipe without a reader
                raise NotAFile(name) from None
            raise
        return _require_regular_file(descriptor, name)

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of `path`. Use it to detect changes only. Raises: OSError."""
        return os.stat(path, dir_fd=self._descriptor, follow_symlinks=False)

    def read_link(self, name: str) -> str:
        """Return the target of the link `name`. Raises: OSError, also if it is not a link."""
        return os.readlink(name, dir_fd=self._descriptor)

    def device_and_inode(self) -> tuple[int, int]:
        """Return device and inode. Raises: OSError."""
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Close the handle."""
        os.close(self._descriptor)


class PathFolder:
    """A folder behind its path, for systems that cannot open relative to a handle."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Return names and kinds, unordered. Raises: OSError."""
        with os.scandir(self._path) as entries:
            return [(entry.name, to_entry_kind(entry)) for entry in entries]

    def open_folder(self, name: str) -> PathFolder:
        """Open the folder `name`; links are rejected. Raises: OSError."""
        try:
            return PathFolder(self._open_name(name))
        except FileNotFoundError:
            return PathFolder(_open_during_replacement(name, self._open_name))

    def _open_name(self, name: str) -> str:
        path = os.path.join(self._path, name)
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(path)
        return path

    def open_file(self, name: str) -> OpenedFile:
        """Open the regular file `name`; links are rejected. Raises: OSError, NotAFile."""
        path = os.path.join(self._path, name)
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return _require_regular_file(os.open(path, _FILE_FLAGS), name)

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of `path`. Use it to detect changes only. Raises: OSError."""
        return os.lstat(os.path.join(self._path, path))

    def read_link(self, name: str) -> str:
        """Return the target of the link `name`. Raises: OSError, also if it is not a link."""
        return os.readlink(os.path.join(self._path, name))

    def device_and_inode(self) -> tuple[int, int]:
        """Return device and inode. Raises: OSError."""
        status = os.stat(self._path)
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Do nothing: no handle is open."""


def _open_during_replacement(name: str, open_name: Callable[[str], _T]) -> _T:
    """Open the old or the new folder `name` during a replacement. Raises: OSError.

    Without an atomic swap, the name is missing for a moment between two renames.
    """
    try:
        return open_name(f"{REPLACED_PREFIX}{name}")
    except FileNotFoundError:
        return open_name(name)  # the replacement has finished, or there is no such folder


def to_entry_kind(entry: os.DirEntry[str]) -> EntryKind:
    """Return the kind of a directory entry, without a system call."""
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    if entry.is_file(follow_symlinks=False):
        return EntryKind.FILE
    return EntryKind.LINK if entry.is_symlink() else EntryKind.OTHER


def mode_to_entry_kind(mode: int) -> EntryKind:
    """Return the entry kind for the mode of a stat that did not follow links."""
    kinds = {
        stat.S_IFDIR: EntryKind.FOLDER,
        stat.S_IFREG: EntryKind.FILE,
        stat.S_IFLNK: EntryKind.LINK,
    }
    return kinds.get(stat.S_IFMT(mode), EntryKind.OTHER)


def _require_regular_file(descriptor: int, name: str) -> OpenedFile:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotAFile(name)
    return OpenedFile(descriptor, status)


def open_root(path: str) -> Folder:
    """Open a root folder; the root itself may be a link. Raises: OSError."""
    if HAS_HANDLES:
        return DescriptorFolder(os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)))
    if not os.path.isdir(path):
        raise NotADirectoryError(path)
    return PathFolder(os.path.realpath(path))


def real_path(path: str) -> str:
    """Return the path without links, or the path itself if it cannot be resolved."""
    # realpath raises if a link disappears during the call or a name is invalid on the file system.
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


class FolderHandle(NamedTuple):
    """Location of a folder: a root, and a relative path walked from the root's handle."""

    root: str
    relative_path: str = ""  # "" is the root itself

    @property
    def path(self) -> str:
        """The absolute path, for display."""
        return os.path.join(self.root, self.relative_path) if self.relative_path else self.root

    @property
    def name(self) -> str:
        """The folder's own name."""
        return os.path.basename(self.path)

    def child(self, name: str) -> FolderHandle:
        """Return the location of the subfolder `name`."""
        prefix = f"{self.relative_path}/" if self.relative_path else ""
        return FolderHandle(self.root, f"{prefix}{name}")

    def descendant(self, path: str) -> FolderHandle:
        """Return the location at a relative path; "" is this folder."""
        return self.child(path) if path else self


def open_folder(location: FolderHandle) -> Folder:
    """Open a folder; links below its root are rejected. Raises: OSError."""
    folder = open_root(location.root)
    for part in location.relative_path.split("/") if location.relative_path else ():
        parent = folder
        try:
            folder = parent.open_folder(part)
        finally:
            parent.close()
    return folder


@contextmanager
def folder_at(location: FolderHandle) -> Iterator[Folder]:
    """Open a folder for the duration of a `with` block. Raises: OSError."""
    parts = location.relative_path.split("/") if location.relative_path else ()
    root = open_root(location.root)
    try:
        with subfolder_at(root, parts) as folder:
            yield folder
    finally:
        root.close()


@contextmanager
def subfolder_at(root: Folder, parts: Sequence[str]) -> Iterator[Folder]:
    """Open the folder at `parts` below `root`; links are rejected. Raises: OSError.

    The only exception is the link `..data` of a Kubernetes volume.
    """
    opened: list[Folder] = []
    try:
        current = root
        for part in parts:
            current = _open_subfolder(current, part)
            opened.append(current)
        yield current
    finally:
        for folder in opened:
            folder.close()


def _open_subfolder(folder: Folder, name: str) -> Folder:
    try:
        return folder.open_folder(name)
    except OSError:
        if name != VOLUME_LINK:
            raise
    return open_volume(folder)


def read_file(folder: Folder, name: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises: OSError, NotAFile, TooLarge."""
    opened = folder.open_file(name)
    try:
        if opened.stat.st_size > max_bytes:
            raise TooLarge(name, max_bytes)
        return read_descriptor(opened.descriptor, max_bytes, name)
    finally:
        os.close(opened.descriptor)


def read_descriptor(descriptor: int, max_bytes: int, name: str) -> bytes:
    """Read to the end of the file. Raises: OSError, TooLarge."""
    # The file may have grown since its stat, so the limit is checked while reading.
    chunks = []
    remaining = max_bytes + 1
    while remaining > 0 and (chunk := os.read(descriptor, min(remaining, 1 << 20))):
        chunks.append(chunk)
        remaining -= len(chunk)
    if remaining <= 0:
        raise TooLarge(name, max_bytes)
    return b"".join(chunks)


def read_below(root: Folder, path: RelativePath, max_bytes: int) -> bytes:
    """Read the file at `path` below `root`; only links of Kubernetes volumes are followed.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        return _read_parts(root, path.parts, max_bytes)
    except FileNotFoundError:
        raise SkillFileNotFound(path.text) from None
    except OSError:
        # Links and unreadable folders give the same error, so that it reveals nothing about them.
        raise UnsafePath(path.text, "it cannot be read from inside its folder") from None


def _read_parts(root: Folder, parts: tuple[str, ...], max_bytes: int) -> bytes:
    try:
        with subfolder_at(root, parts[:-1]) as folder:
            return read_file(folder, parts[-1], max_bytes)
    except FileNotFoundError:
        raise
    except OSError:
        if parts[0] == VOLUME_LINK or not is_volume_link(root, parts[0]):
            raise
    return _read_from_volume(root, parts, max_bytes)


def _read_from_volume(root: Folder, parts: tuple[str, ...], max_bytes: int) -> bytes:
    """Read a file of a Kubernetes volume; retries if the volume is updated."""
    for _ in range(MAX_VOLUME_ATTEMPTS):
        version = read_volume_version(root)
        try:
            with subfolder_at(root, (version, *parts[:-1])) as folder:
                return read_file(folder, parts[-1], max_bytes)
        except FileNotFoundError:
            if read_volume_version(root) == version:
                break
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), parts[-1])


def is_inside(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or below it, compared by path components."""
    try:
        return os.path.commonpath((path, root)) == root
    except ValueError:  # different drives
        return False
