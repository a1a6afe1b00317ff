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
    VOLUME_TRIES,
    leads_into_volume,
    open_volume,
    volume_version,
)
from skillhall._internal.policy.scan_rules import STAGED, VOLUME
from skillhall.errors import NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.skill.bundle import RelativePath

ASIDE = f"{STAGED}old-"  # a folder that is being replaced, with its name behind
HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# A handle that can only be walked through needs no permission to read, and costs less.
_WALK = getattr(os, "O_PATH", 0) | _FOLDER
# A pipe named SKILL.md must not make us wait for a writer.
_FILE = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_T = TypeVar("_T")


class Kind(StrEnum):
    """What a directory entry is, without following links."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


_A_FOLDER = Kind.FOLDER


class Opened(NamedTuple):
    """An open regular file; the caller closes `descriptor`."""

    descriptor: int
    stat: os.stat_result


class Folder(Protocol):
    """An open folder. Every name given to it is one path component."""

    def entries(self) -> list[tuple[str, Kind]]:
        """Names and kinds, in no particular order. Raises: OSError."""

    def folder(self, name: str) -> Folder:
        """The folder `name`, not through a link. Raises: OSError."""

    def file(self, name: str) -> Opened:
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""

    def peek(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""

    def link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""

    def identity(self) -> tuple[int, int]:
        """Device and inode. Raises: OSError."""

    def close(self) -> None:
        """Give the handle back."""


class HandleFolder:
    """A folder behind a file descriptor."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def entries(self) -> list[tuple[str, Kind]]:
        """Names and kinds, in no particular order. Raises: OSError."""
        readable = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=self._descriptor)
        try:
            with os.scandir(readable) as found:
                # Folders are nearly all there is in a large collection.
                return [
                    (e.name, _A_FOLDER if e.is_dir(follow_symlinks=False) else kind_of(e))
                    for e in found
                ]
        finally:
            os.close(readable)

    def folder(self, name: str) -> HandleFolder:
        """The folder `name`, not through a link. Raises: OSError."""
        try:
            return HandleFolder(os.open(name, _WALK, dir_fd=self._descriptor))
        except FileNotFoundError:
            return HandleFolder(_open_replaced(name, self._open))

    def _open(self, name: str) -> int:
        return os.open(name, _WALK, dir_fd=self._descriptor)

    def file(self, name: str) -> Opened:
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""
        try:
            descriptor = os.open(name, _FILE, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
                raise NotAFile(name) from None
            raise
        return _regular(descriptor, name)

    def peek(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""
        return os.stat(path, dir_fd=self._descriptor, follow_symlinks=False)

    def link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""
        return os.readlink(name, dir_fd=self._descriptor)

    def identity(self) -> tuple[int, int]:
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

    def entries(self) -> list[tuple[str, Kind]]:
        """Names and kinds, in no particular order. Raises: OSError."""
        with os.scandir(self._path) as found:
            return [(entry.name, kind_of(entry)) for entry in found]

    def folder(self, name: str) -> PathFolder:
        """The folder `name`, not through a link. Raises: OSError."""
        try:
            return PathFolder(self._open(name))
        except FileNotFoundError:
            return PathFolder(_open_replaced(name, self._open))

    def _open(self, name: str) -> str:
        path = os.path.join(self._path, name)
        mode = os.lstat(path).st_mode
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(path)
        return path

    def file(self, name: str) -> Opened:
        """The regular file `name`, not through a link. Raises: OSError, NotAFile."""
        path = os.path.join(self._path, name)
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return _regular(os.open(path, _FILE), name)

    def peek(self, path: str) -> os.stat_result:
        """The stat of what stands there; only good for noticing a change. Raises: OSError."""
        return os.lstat(os.path.join(self._path, path))

    def link(self, name: str) -> str:
        """The text of the link `name`. Raises: OSError, also if it is none."""
        return os.readlink(os.path.join(self._path, name))

    def identity(self) -> tuple[int, int]:
        """Device and inode. Raises: OSError."""
        found = os.stat(self._path)
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Nothing is held open."""


def _open_replaced(name: str, opened: Callable[[str], _T]) -> _T:
    """The folder `name` while it is being replaced, where that takes two steps: the old or new one.

    Raises: OSError.
    """
    try:
        return opened(f"{ASIDE}{name}")
    except FileNotFoundError:
        return opened(name)  # both steps were done in between, or there is no such folder


def kind_of(entry: os.DirEntry[str]) -> Kind:
    """What the entry is; the listing itself knows, so this costs no call."""
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    if entry.is_file(follow_symlinks=False):
        return Kind.FILE
    return Kind.LINK if entry.is_symlink() else Kind.OTHER


def kind_of_mode(mode: int) -> Kind:
    """The same for the mode of a stat that did not follow links."""
    kinds = {stat.S_IFDIR: Kind.FOLDER, stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.LINK}
    return kinds.get(stat.S_IFMT(mode), Kind.OTHER)


def _regular(descriptor: int, name: str) -> Opened:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise NotAFile(name)
    return Opened(descriptor, found)


def open_root(path: str) -> Folder:
    """The folder at `path`; a root may itself be a link, it is resolved here, once.

    Raises: OSError.
    """
    if HAS_HANDLES:
        return HandleFolder(os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)))
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


class Place(NamedTuple):
    """A folder below a root: reached from the root's handle, name by name."""

    root: str
    below: str = ""  # "" is the root itself

    @property
    def path(self) -> str:
        """The absolute path, for people."""
        return os.path.join(self.root, self.below) if self.below else self.root

    @property
    def name(self) -> str:
        """The folder's own name."""
        return os.path.basename(self.path)

    def child(self, name: str) -> Place:
        """The folder `name` in this one."""
        return Place(self.root, f"{self.below}/{name}" if self.below else name)

    def below_it(self, path: str) -> Place:
        """The folder at a path below this one; "" is this one."""
        return self.child(path) if path else self


def open_place(place: Place) -> Folder:
    """The folder at `place`, no part below its root through a link. Raises: OSError."""
    folder = open_root(place.root)
    for part in place.below.split("/") if place.below else ():
        above = folder
        try:
            folder = above.folder(part)
        finally:
            above.close()
    return folder


@contextmanager
def opened_place(place: Place) -> Iterator[Folder]:
    """The open folder at `place`. Raises: OSError."""
    root = open_root(place.root)
    try:
        with opened_beneath(root, place.below.split("/") if place.below else ()) as folder:
            yield folder
    finally:
        root.close()


@contextmanager
def opened_beneath(root: Folder, parts: Sequence[str]) -> Iterator[Folder]:
    """The folder reached from `root` by `parts`, no part through a link. Raises: OSError.

    The one exception is `..data` of a mounted volume.
    """
    held: list[Folder] = []
    try:
        current = root
        for part in parts:
            current = _entered(current, part)
            held.append(current)
        yield current
    finally:
        for folder in held:
            folder.close()


def _entered(folder: Folder, name: str) -> Folder:
    try:
        return folder.folder(name)
    except OSError:
        if name != VOLUME:
            raise
    return open_volume(folder)


def read_file(folder: Folder, name: str, at_most: int) -> bytes:
    """All bytes of a regular file. Raises: OSError, NotAFile, TooLarge."""
    opened = folder.file(name)
    try:
        if opened.stat.st_size > at_most:
            raise TooLarge(name, at_most)
        return read_up_to(opened.descriptor, at_most, name)
    finally:
        os.close(opened.descriptor)


def read_up_to(descriptor: int, at_most: int, name: str) -> bytes:
    """Everything until the end of the file: it may have grown. Raises: OSError, TooLarge."""
    chunks = []
    left = at_most + 1
    while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise TooLarge(name, at_most)
    return b"".join(chunks)


def read_beneath(root: Folder, path: RelativePath, at_most: int) -> bytes:
    """The bytes at `path` below `root`. Links are refused at every step but into a volume.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    try:
        return _read_parts(root, path.parts, at_most)
    except FileNotFoundError:
        raise SkillFileNotFound(path.text) from None
    except OSError:
        # A link and an unreadable folder are answered alike: which it is, is nobody's business.
        raise UnsafePath(path.text, "it cannot be read from inside its folder") from None


def _read_parts(root: Folder, parts: tuple[str, ...], at_most: int) -> bytes:
    try:
        with opened_beneath(root, parts[:-1]) as folder:
            return read_file(folder, parts[-1], at_most)
    except FileNotFoundError:
        raise
    except OSError:
        if parts[0] == VOLUME or not leads_into_volume(root, parts[0]):
            raise
    return _read_mounted(root, parts, at_most)


def _read_mounted(root: Folder, parts: tuple[str, ...], at_most: int) -> bytes:
    """The bytes of a file in the volume of a folder; after an update, those of the new version."""
    for _ in range(VOLUME_TRIES):
        version = volume_version(root)
        try:
            with opened_beneath(root, (version, *parts[:-1])) as folder:
                return read_file(folder, parts[-1], at_most)
        except FileNotFoundError:
            if volume_version(root) == version:
                break
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), parts[-1])


def is_beneath(path: str, root: str) -> bool:
    """Whether the real `path` is `root` or lies in it, compared name by name."""
    try:
        return os.path.commonpath((path, root)) == root
    except ValueError:  # different drives
        return False
