"""Writing below a root by handles: staged beside the target, synced, then renamed into place.

Whatever happens in between, the old bytes or the new ones stand there, never a mixture, and nothing
is written through a link. Systems without handles get the same methods over paths.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from typing import TYPE_CHECKING, Self

from skillhall._internal.fs.handles import ASIDE, Kind, kind_of_mode
from skillhall._internal.policy.scan_rules import STAGED
from skillhall.errors import Conflict, NotAFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

if sys.platform != "win32":
    import fcntl

# Whole names: a lock of ours begins with the same letters and is finished.
_UNFINISHED = re.compile(rf"{re.escape(STAGED)}[0-9a-f]{{16}}|{re.escape(ASIDE)}.*", re.DOTALL)
_HAS_HANDLES = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)


class WritableFolder:
    """An open folder to write into. Every name given to it is one path component."""

    __slots__ = ("_handle", "_path")

    def __init__(self, path: str, handle: int | None = None) -> None:
        """The folder at `path`; a root may itself be a link. Raises: OSError."""
        self._path = path
        self._handle = os.open(path, _FOLDER) if handle is None and _HAS_HANDLES else handle

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the handle back."""
        if self._handle is not None:
            os.close(self._handle)

    def kind(self, name: str) -> Kind | None:
        """What stands there, without following links; `None` if nothing does. Raises: OSError."""
        try:
            mode = self._stat(name).st_mode
        except FileNotFoundError:
            return None
        return kind_of_mode(mode)

    def mode(self, name: str) -> int:
        """The permission bits of what stands there. Raises: OSError."""
        return stat.S_IMODE(self._stat(name).st_mode) & 0o777

    def folder(self, name: str, *, make: bool = False) -> WritableFolder:
        """The folder `name`, not through a link; made first if asked. Raises: OSError."""
        path = self._name(name)
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, dir_fd=self._handle)
        if self._handle is None:
            if self.kind(name) is not Kind.FOLDER:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return WritableFolder(path)
        handle = os.open(path, _FOLDER | _NO_FOLLOW, dir_fd=self._handle)
        return WritableFolder(os.path.join(self._path, name), handle)

    def create(self, name: str, data: bytes, mode: int = 0o644, *, synced: bool = True) -> None:
        """Make a new file and bring it to the disk. Raises: OSError if the name is taken."""
        descriptor = os.open(self._name(name), _NEW, 0o600, dir_fd=self._handle)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            if synced:
                os.fsync(descriptor)

    def put(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Make or replace a regular file, all or nothing. Raises: OSError, NotAFile."""
        if self.kind(name) not in (None, Kind.FILE):
            raise NotAFile(name)
        with self.staged() as temporary:
            self.create(temporary, data, mode)
            self.rename(temporary, name)
        self.sync()

    def put_folder(
        self, name: str, files: Mapping[str, tuple[bytes, int]], *, synced: bool = True
    ) -> None:
        """Make a new folder with files, by path and mode, all or nothing. Raises: OSError.

        What nobody reads after a crash need not be synced.
        """
        with self.staged() as temporary:
            self._build(temporary, files, synced=synced)
            self.rename(temporary, name)
        if synced:
            self.sync()

    def _build(
        self, name: str, files: Mapping[str, tuple[bytes, int]], *, synced: bool = True
    ) -> None:
        with self.folder(name, make=True) as staging:
            for path, (data, mode) in files.items():
                staging.create_below(path, data, mode, synced=synced)
            if synced:
                staging.sync()

    def swap_folder(self, name: str, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Put a folder with `files` where `name` stands; the old one stays until that is whole.

        Where the system cannot exchange two names in one step, a process that is killed in between
        leaves the old folder aside: see `recover`. Call both with the folder locked.
        Raises: OSError.
        """
        with self.staged() as temporary:
            self._build(temporary, files)
            self.trade_folder(name, temporary)
        self.sync()
        self.remove_aside(name)

    def trade_folder(self, name: str, by: str) -> None:
        """Put the folder `by` where `name` stands; the old one is then at `by`, or aside.

        Raises: OSError.
        """
        if self._exchange(by, name):
            return
        aside = f"{ASIDE}{name}"
        self.rename(name, aside)
        try:
            self.rename(by, name)
        except BaseException:
            self.rename(aside, name)
            raise

    def remove_aside(self, name: str) -> None:
        """Remove the folder that stood at `name`, if it was put aside."""
        with contextlib.suppress(OSError):  # the new one stands; `recover` gets what is left
            self.remove(f"{ASIDE}{name}")

    def put_link(self, name: str, text: str) -> None:
        """Make or replace a link to `text`, all or nothing. Raises: OSError, NotAFile."""
        if self.kind(name) not in (None, Kind.LINK):
            raise NotAFile(name)
        with self.staged() as temporary:
            os.symlink(text, self._name(temporary), dir_fd=self._handle)
            self.rename(temporary, name)
        self.sync()

    def discard(self, name: str) -> None:
        """Remove what stands there, whole or not at all. Raises: OSError."""
        with self.staged() as temporary:
            self.rename(name, temporary)
            self.sync()

    def recover(self) -> None:
        """Undo or finish what a killed process left behind. Raises: OSError."""
        for entry in self.names():
            name = entry.removeprefix(ASIDE)
            if name != entry and self.kind(name) is None:
                self.rename(entry, name)
            elif _UNFINISHED.fullmatch(entry):
                # What cannot be removed must not stand in the way of every later change.
                with contextlib.suppress(OSError):
                    self.remove(entry)

    def remove_unfinished(self, oldest: float) -> None:
        """Remove what processes left unfinished before a time in seconds since 1970."""
        for entry in self.names():
            if _UNFINISHED.fullmatch(entry):
                with contextlib.suppress(OSError):
                    if self._stat(entry).st_mtime < oldest:
                        self.remove(entry)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out that ask for the same; waits for them. Raises: OSError."""
        if sys.platform != "win32" and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        else:
            yield

    def create_below(self, path: str, data: bytes, mode: int, *, synced: bool = True) -> None:
        """Make a new file and the folders above it. Raises: OSError."""
        first, slash, rest = path.partition("/")
        if not slash:
            self.create(first, data, mode, synced=synced)
            return
        with self.folder(first, make=True) as below:
            below.create_below(rest, data, mode, synced=synced)
            if synced:
                below.sync()

    def rename(self, name: str, new: str) -> None:
        """Call what stands at `name` `new`; a file there is replaced. Raises: OSError."""
        handle = self._handle
        os.replace(self._name(name), self._name(new), src_dir_fd=handle, dst_dir_fd=handle)

    def _exchange(self, name: str, other: str) -> bool:
        # Imported here: only a replacement needs it, and it takes a while to load.
        from skillhall._internal.fs.atomic_swap import exchange  # noqa: PLC0415

        return self._handle is not None and exchange(self._handle, name, other)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with all it holds. Raises: OSError."""
        if self.kind(name) is not Kind.FOLDER:
            os.unlink(self._name(name), dir_fd=self._handle)
            return
        with self.folder(name) as below:
            for entry in below.names():
                below.remove(entry)
        os.rmdir(self._name(name), dir_fd=self._handle)

    def names(self) -> list[str]:
        """The names in the folder, in order. Raises: OSError."""
        return sorted(os.listdir(self._path if self._handle is None else self._handle))

    def sync(self) -> None:
        """Bring renames to the disk, where the file system can."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)

    @contextlib.contextmanager
    def staged(self) -> Iterator[str]:
        """A name nobody uses, for something unfinished; what is left of it is removed."""
        temporary = f"{STAGED}{secrets.token_hex(8)}"
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                self.remove(temporary)

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(self._name(name), dir_fd=self._handle, follow_symlinks=False)

    def _name(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self._path, name)


def replace_file(folder: str, name: str, data: bytes) -> None:
    """Give the regular file `name` other bytes and keep its mode. Raises: OSError, NotAFile."""
    with WritableFolder(folder) as base:
        if base.kind(name) is not Kind.FILE:
            raise NotAFile(name)
        base.put(name, data, base.mode(name))


def rename_file(folder: str, name: str, new: str) -> None:
    """Call the regular file `name` `new`. Raises: OSError, NotAFile, Conflict."""
    with WritableFolder(folder) as base:
        if base.kind(name) is not Kind.FILE:
            raise NotAFile(name)
        # Where case does not count, both names are the one file, and the listing has only one.
        if new in base.names() or (base.kind(new) is not None and name.lower() != new.lower()):
            raise Conflict(new)
        base.rename(name, new)
        base.sync()


def create_folder(parent: str, name: str, files: dict[str, bytes]) -> None:
    """Make the folder `name` with `files` in it, all or nothing. Raises: OSError, Conflict."""
    # Whoever clears up in `parent` must not take what is staged here for a leftover.
    with WritableFolder(parent) as base, base.locked():
        if base.kind(name) is not None:
            raise Conflict(name)
        try:
            base.put_folder(name, {path: (data, 0o644) for path, data in files.items()})
        except OSError:
            if base.kind(name) is not None:  # somebody was faster
                raise Conflict(name) from None
            raise
