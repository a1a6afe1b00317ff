"""Opening what lies below a root, by handles: a path is walked name by name, never through a link.

Checking a path and then opening it loses races: a folder can be swapped for a link in between. A
handle cannot be swapped, so every step opens one name relative to the handle of the step before.
Systems without such calls (Windows) get the same methods over paths, checked before each use.
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
from skillhall._internal.policy.scan_rules import STAGING_PREFIX, VOLUME_LINK
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.skill.bundle import RelativePath

REPLACED_PREFIX = f"{STAGING_PREFIX}old-"  # a folder that is being replaced, with its name behind
HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# A handle that can only be walked through needs no permission to read, and costs less.
_TRAVERSE_FLAGS = getattr(os, "O_PATH", 0) | _FOLDER_FLAGS
# A pipe named SKILL.md must not make us wait for a writer.
_FILE_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_T = TypeVar("_T")


class EntryKind(StrEnum):
    """What a directory entry is, without following links."""

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
    """An open folder. Every name given to it is one path component."""

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Names and kinds, in no particular order. Raises: OSError."""

    def open_folder(self, name: str) -> Folder:
        """The folder `name`, not through a link. Raises: OSError."""

    def open_file(self, name: str) -> OpenedFile:
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""

    def stat(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""

    def read_link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""

    def device_and_inode(self) -> tuple[int, int]:
        """Device and inode. Raises: OSError."""

    def close(self) -> None:
        """Give the handle back."""


class DescriptorFolder:
    """A folder behind a file descriptor."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Names and kinds, in no particular order. Raises: OSError."""
        readable = os.open(".", os.O_RDONLY | _FOLDER_FLAGS, dir_fd=self._descriptor)
        try:
            with os.scandir(readable) as found:
                # Folders are nearly all there is in a large collection.
                return [
                    (e.name, _FOLDER_KIND if e.is_dir(follow_symlinks=False) else to_entry_kind(e))
                    for e in found
                ]
        finally:
            os.close(readable)

    def open_folder(self, name: str) -> DescriptorFolder:
        """The folder `name`, not through a link. Raises: OSError."""
        try:
            return DescriptorFolder(os.open(name, _TRAVERSE_FLAGS, dir_fd=self._descriptor))
        except FileNotFoundError:
            return DescriptorFolder(_open_during_replacement(name, self._open_name))

    def _open_name(self, name: str) -> int:
        return os.open(name, _TRAVERSE_FLAGS, dir_fd=self._descriptor)

    def open_file(self, name: str) -> OpenedFile:
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""
        try:
            descriptor = os.open(name, _FILE_FLAGS, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
                raise NotAFile(name) from None
            raise
        return _require_regular_file(descriptor, name)

    def stat(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""
        return os.stat(path, dir_fd=self._descriptor, follow_symlinks=False)

    def read_link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""
        return os.readlink(name, dir_fd=self._descriptor)

    def device_and_inode(self) -> tuple[int, int]:
        """Device and inode. Raises: OSError."""
        found = os.fstat(self._descriptor)
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Give the handle back."""
        os.close(self._descriptor)


class PathFolder:
    """A folder behind its path, for systems that cannot open relative to a handle."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Names and kinds, in no particular order. Raises: OSError."""
        with os.scandir(self._path) as found:
            return [(entry.name, to_entry_kind(entry)) for entry in found]

    def open_folder(self, name: str) -> PathFolder:
        """The folder `name`, not through a link. Raises: OSError."""
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
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""
        path = os.path.join(self._path, name)
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return _require_regular_file(os.open(path, _FILE_FLAGS), name)

    def stat(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""
        return os.lstat(os.path.join(self._path, path))

    def read_link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""
        return os.readlink(os.path.join(self._path, name))

    def device_and_inode(self) -> tuple[int, int]:
        """Device and inode. Raises: OSError."""
        found = os.stat(self._path)
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Nothing is held open."""


def _open_during_replacement(name: str, open_name: Callable[[str], _T]) -> _T:
    """The folder `name` while it is being replaced, where that takes two steps: the old or new one.

    Raises: OSError.
    """
    try:
        return open_name(f"{REPLACED_PREFIX}{name}")
    except FileNotFoundError:
        return open_name(name)  # both steps were done in between, or there is no such folder


def to_entry_kind(entry: os.DirEntry[str]) -> EntryKind:
    """What the entry is; the listing itself knows, so this costs no call."""
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    if entry.is_file(follow_symlinks=False):
        return EntryKind.FILE
    return EntryKind.LINK if entry.is_symlink() else EntryKind.OTHER


def mode_to_entry_kind(mode: int) -> EntryKind:
    """The same for the mode of a stat that did not follow links."""
    kinds = {
        stat.S_IFDIR: EntryKind.FOLDER,
        stat.S_IFREG: EntryKind.FILE,
        stat.S_IFLNK: EntryKind.LINK,
    }
    return kinds.get(stat.S_IFMT(mode), EntryKind.OTHER)


def _require_regular_file(descriptor: int, name: str) -> OpenedFile:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise NotAFile(name)
    return OpenedFile(descriptor, found)


def open_root(path: str) -> Folder:
    """The folder at `path`; a root may itself be a link, it is resolved here, once.

    Raises: OSError.
    """
    if HAS_HANDLES:
        return DescriptorFolder(os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)))
    if not os.path.isdir(path):
        raise NotADirectoryError(path)
    return PathFolder(os.path.realpath(path))


def real_path(path: str) -> str:
    """The path without links; the path itself if it cannot be resolved.

    A link that disappears while it is resolved, and a name that no file system can hold, make
    `os.path.realpath` raise.
    """
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


class FolderHandle(NamedTuple):
    """A folder below a root: reached from the root's handle, name by name."""

    root: str
    relative_path: str = ""  # "" is the root itself

    @property
    def path(self) -> str:
        """The absolute path, for people."""
        return os.path.join(self.root, self.relative_path) if self.relative_path else self.root

    @property
    def name(self) -> str:
        """The folder's own name."""
        return os.path.basename(self.path)

    def child(self, name: str) -> FolderHandle:
        """The folder `name` in this one."""
        return FolderHandle(
            self.root, f"{self.relative_path}/{name}" if self.relative_path else name
        )

    def descendant(self, path: str) -> FolderHandle:
        """The folder at a path below this one; "" is this one."""
        return self.child(path) if path else self


def open_folder(location: FolderHandle) -> Folder:
    """The folder at `place`, no part below its root through a link. Raises: OSError."""
    folder = open_root(location.root)
    for part in location.relative_path.split("/") if location.relative_path else ():
        above = folder
        try:
            folder = above.open_folder(part)
        finally:
            above.close()
    return folder


@contextmanager
def folder_at(location: FolderHandle) -> Iterator[Folder]:
    """The open folder at `place`. Raises: OSError."""
    root = open_root(location.root)
    try:
        with subfolder_at(
            root, location.relative_path.split("/") if location.relative_path else ()
        ) as folder:
            yield folder
    finally:
        root.close()


@contextmanager
def subfolder_at(root: Folder, parts: Sequence[str]) -> Iterator[Folder]:
    """The folder reached from `root` by `parts`, no part through a link. Raises: OSError.

    The one exception is `..data` of a mounted volume.
    """
    held: list[Folder] = []
    try:
        current = root
        for part in parts:
            current = _open_subfolder(current, part)
            held.append(current)
        yield current
    finally:
        for folder in held:
            folder.close()


def _open_subfolder(folder: Folder, name: str) -> Folder:
    try:
        return folder.open_folder(name)
    except OSError:
        if name != VOLUME_LINK:
            raise
    return open_volume(folder)


def read_file(folder: Folder, name: str, max_bytes: int) -> bytes:
    """All bytes of a regular file. Raises: OSError, NotAFile, TooLarge."""
    opened = folder.open_file(name)
    try:
        if opened.stat.st_size > max_bytes:
            raise TooLarge(name, max_bytes)
        return read_descriptor(opened.descriptor, max_bytes, name)
    finally:
        os.close(opened.descriptor)


def read_descriptor(descriptor: int, max_bytes: int, name: str) -> bytes:
    """Everything until the end of the file: it may have grown. Raises: OSError, TooLarge."""
    chunks = []
    left = max_bytes + 1
    while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise TooLarge(name, max_bytes)
    return b"".join(chunks)


def read_below(root: Folder, path: RelativePath, max_bytes: int) -> bytes:
    """The bytes at `path` below `root`. Links are refused at every step but into a volume.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        return _read_parts(root, path.parts, max_bytes)
    except FileNotFoundError:
        raise SkillFileNotFound(path.text) from None
    except OSError:
        # A link and an unreadable folder are answered alike: which it is, is nobody's business.
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
    """The bytes of a file in the volume of a folder; after an update, those of the new version."""
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
    """Whether the real `path` is `root` or lies in it, compared name by name."""
    try:
        return os.path.commonpath((path, root)) == root
    except ValueError:  # different drives
        return False
