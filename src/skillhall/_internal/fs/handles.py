"""Access to files and folders below a root, never through a symbolic link.

Checking a path before opening it is a race: a folder can be replaced by a link in between. A handle
cannot be replaced, so each path component is opened relative to the handle of its parent folder.
On systems without such calls (Windows), the same methods use paths and check them before each use.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Self

from skillhall._internal.fs.kubernetes_volumes import (
    MAX_VOLUME_ATTEMPTS,
    is_volume_link,
    open_volume,
    read_volume_version,
)
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX, VOLUME_LINK
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.skill.bundle import RelativePath

REPLACED_PREFIX = f"{STAGING_PREFIX}old-"  # followed by the name of the folder being replaced
HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# O_PATH handles need no read permission and are cheaper; they can only be traversed.
_TRAVERSE_FLAGS = getattr(os, "O_PATH", 0) | _FOLDER_FLAGS
_LIST_FLAGS = os.O_RDONLY | _FOLDER_FLAGS
# O_NONBLOCK: opening a named pipe called SKILL.md would otherwise wait for a writer.
_FILE_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


_MAX_WITHOUT_STATUS = 1 << 20  # bytes; block devices are larger


class EntryKind(StrEnum):
    """Kind of a directory entry; links are not followed."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


_FOLDER_KIND, _FILE_KIND = EntryKind.FOLDER, EntryKind.FILE  # globals are faster than attributes


class OpenedFile(NamedTuple):
    """An open regular file; the caller closes `descriptor`."""

    descriptor: int
    stat: os.stat_result


class Folder:
    """Open folder. Every `name` is a single path component.

    On systems that cannot open files relative to a handle, it has a path instead.
    """

    __slots__ = ("_handle", "_is_listable", "_path")

    def __init__(self, handle: int | None, path: str = "", *, is_listable: bool = False) -> None:
        self._handle = handle
        self._path = path
        self._is_listable = is_listable  # the handle itself can be listed, not only traversed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def list_entries(self) -> list[tuple[str, EntryKind]]:
        """Return names and kinds, unordered. Raises: OSError."""
        readable = None
        if self._handle is not None and not self._is_listable:
            readable = os.open(".", _LIST_FLAGS, dir_fd=self._handle)
        handle = self._handle if readable is None else readable
        try:
            with os.scandir(self._path if handle is None else handle) as entries:
                # Nearly all entries are folders and files, so they skip the function call.
                return [
                    (
                        e.name,
                        _FOLDER_KIND
                        if e.is_dir(follow_symlinks=False)
                        else _FILE_KIND
                        if e.is_file(follow_symlinks=False)
                        else to_entry_kind(e),
                    )
                    for e in entries
                ]
        finally:
            if readable is not None:
                os.close(readable)

    def open_folder(self, name: str) -> Folder:
        """Open the folder `name`; links are rejected. Raises: OSError."""
        try:
            return self._open_name(name)
        except FileNotFoundError:
            # During a replacement without an atomic swap, the name is missing between two renames.
            with suppress(FileNotFoundError):
                return self._open_name(f"{REPLACED_PREFIX}{name}")
            return self._open_name(name)  # the replacement has finished, or there is no such folder

    def open_listable(self, name: str) -> Folder:
        """Open the folder `name` so that it can be listed faster. Raises: OSError."""
        if self._handle is None:
            return self._open_name(name)
        return Folder(os.open(name, _LIST_FLAGS, dir_fd=self._handle), is_listable=True)

    def _open_name(self, name: str) -> Folder:
        if self._handle is not None:
            return Folder(os.open(name, _TRAVERSE_FLAGS, dir_fd=self._handle))
        path = os.path.join(self._path, name)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(path)
        return Folder(None, path)

    def open_file(self, name: str) -> OpenedFile:
        """Open the regular file `name`; links are rejected. Raises: OSError, NotAFile."""
        if self._handle is None and stat.S_ISLNK(self.stat(name).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        try:
            descriptor = os.open(self._locate(name), _FILE_FLAGS, dir_fd=self._handle)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket, or a device that does not exist
                raise NotAFile(name) from None
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise NotAFile(name)
        return OpenedFile(descriptor, status)

    def read_start_below(
        self, name: str, file: str, size: int, *, with_status: bool = True, will_list: bool = False
    ) -> tuple[bytes, int, os.stat_result | None] | Folder:
        """Read up to `size` bytes of the regular file `file` in the subfolder `name`.

        Returns the bytes, the size of the file, and its stat if `with_status`; without it, reading
        is about 10 % faster. If there is no such file, returns the open subfolder, which can be
        listed faster with `will_list`. This needs fewer system calls than `open_folder` and
        `open_file`, which matters to large scans.
        Raises: OSError, NotAFile.
        """
        if self._handle is None:
            folder = self.open_folder(name)
            try:
                descriptor, status = folder.open_file(file)
            except FileNotFoundError:
                return folder
        else:
            flags = _LIST_FLAGS if will_list else _TRAVERSE_FLAGS
            handle = os.open(name, flags, dir_fd=self._handle)
            try:
                descriptor = os.open(file, _FILE_FLAGS, dir_fd=handle)
            except FileNotFoundError:
                return Folder(handle, is_listable=will_list)
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
        try:
            if not with_status and self._handle is not None:
                # Pipes, sockets, terminals and folders raise here. Other devices have no size.
                data = os.pread(descriptor, size, 0)
                total = os.lseek(descriptor, 0, os.SEEK_END)
                length = len(data)
                if length in (total, size) and 0 < total <= _MAX_WITHOUT_STATUS:
                    return data, total, None
                os.lseek(descriptor, 0, os.SEEK_SET)
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise NotAFile(file)
            return os.read(descriptor, size), status.st_size, status
        finally:
            os.close(descriptor)

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of `path`; if it is a link, of the link itself. Raises: OSError.

        If `path` has several components, links in all but the last are followed. Use the stat of
        such a path only to detect changes.
        """
        return os.stat(self._locate(path), dir_fd=self._handle, follow_symlinks=False)

    def status(self) -> os.stat_result:
        """Return the stat of the folder itself. Raises: OSError."""
        return os.stat(self._path) if self._handle is None else os.fstat(self._handle)

    def read_link(self, name: str) -> str:
        """Return the target of the link `name`. Raises: OSError, e.g. if it is not a link."""
        return os.readlink(self._locate(name), dir_fd=self._handle)

    def device_and_inode(self) -> tuple[int, int]:
        """Return device and inode. Raises: OSError."""
        status = self.status()
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Close the handle, if there is one."""
        if self._handle is not None:
            os.close(self._handle)

    def _locate(self, name: str) -> str:
        return os.path.join(self._path, name) if self._handle is None else name


def to_entry_kind(entry: os.DirEntry[str]) -> EntryKind:
    """Return the kind of a directory entry, usually without a system call."""
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


def open_root(path: str) -> Folder:
    """Open a root folder; the root itself may be a link. Raises: OSError."""
    if HAS_HANDLES:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        return Folder(handle, is_listable=True)
    if not os.path.isdir(path):
        raise NotADirectoryError(path)
    return Folder(None, os.path.realpath(path))


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


def open_folder_at(location: FolderHandle, *, will_list: bool = False) -> Folder:
    """Open a folder; links below the root are rejected.

    With `will_list`, it can be listed faster. Raises: OSError.
    """
    folder = open_root(location.root)
    parts = location.relative_path.split("/") if location.relative_path else []
    for number, part in enumerate(parts, 1):
        parent = folder
        try:
            folder = _open_part(parent, part, will_list=will_list and number == len(parts))
        finally:
            parent.close()
    return folder


@contextmanager
def subfolder_at(root: Folder, parts: Sequence[str]) -> Iterator[Folder]:
    """Open the folder at `parts` below `root`; links are rejected. Raises: OSError."""
    opened: list[Folder] = []
    try:
        for part in parts:
            root = _open_part(root, part)
            opened.append(root)
        yield root
    finally:
        for folder in reversed(opened):
            folder.close()


def _open_part(folder: Folder, part: str, *, will_list: bool = False) -> Folder:
    """Open a folder. The only link that is followed is `..data` of a Kubernetes volume."""
    try:
        if will_list:
            with suppress(OSError):  # missing for a moment, or without the permission to list it
                return folder.open_listable(part)
        return folder.open_folder(part)
    except OSError:
        if part != VOLUME_LINK:
            raise
        return open_volume(folder)


def read_file(folder: Folder, name: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises: OSError, NotAFile, TooLarge."""
    opened = folder.open_file(name)
    try:
        if opened.stat.st_size > max_bytes:
            raise TooLarge(name, max_bytes)
        return read_descriptor(opened.descriptor, max_bytes, name, opened.stat.st_size)
    finally:
        os.close(opened.descriptor)


def read_descriptor(descriptor: int, max_bytes: int, name: str, size: int | None = None) -> bytes:
    """Read a file to its end; `size` is its expected size. Raises: OSError, TooLarge."""
    chunks = []
    remaining = max_bytes + 1
    if size is not None:
        # Most files are complete after this call, and a large buffer costs more than the call.
        first = os.read(descriptor, size + 1)
        if len(first) == size:
            return first
        chunks = [first]
        remaining -= len(first)
    # The file may have grown since its stat, so the limit is checked while reading.
    while remaining > 0 and (chunk := os.read(descriptor, min(remaining, 1 << 20))):
        chunks.append(chunk)
        remaining -= len(chunk)
    if remaining <= 0:
        raise TooLarge(name, max_bytes)
    return b"".join(chunks)


def read_below(root: Folder, path: RelativePath, max_bytes: int) -> bytes:
    """Read the file at `path` below `root`.

    Only links of Kubernetes volumes are followed.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    parts = path.parts
    try:
        try:
            if len(parts) == 1:
                return read_file(root, parts[0], max_bytes)
            with subfolder_at(root, parts[:-1]) as folder:
                return read_file(folder, parts[-1], max_bytes)
        except FileNotFoundError:
            raise
        except OSError:
            if parts[0] == VOLUME_LINK or not is_volume_link(root, parts[0]):
                raise
        return _read_from_volume(root, parts, max_bytes)
    except FileNotFoundError:
        raise SkillFileNotFound(path.text) from None
    except OSError:
        # Links and unreadable folders give the same error, so that it reveals nothing about them.
        raise UnsafePath(path.text, "it is not a readable file inside its folder") from None


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
