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

from skillhall._internal.fs.handles import REPLACED_PREFIX, EntryKind, mode_to_entry_kind
from skillhall._internal.policy.scan_rules import STAGING_PREFIX
from skillhall.errors import Conflict, NotAFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

if sys.platform != "win32":
    import fcntl

# Whole names: a lock of ours begins with the same letters and is finished.
_STAGING_NAME = re.compile(
    rf"{re.escape(STAGING_PREFIX)}[0-9a-f]{{16}}|{re.escape(REPLACED_PREFIX)}.*", re.DOTALL
)
_HAS_HANDLES = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)


class WritableFolder:
    """An open folder to write into. Every name given to it is one path component."""

    __slots__ = ("_handle", "_path")

    def __init__(self, path: str, handle: int | None = None) -> None:
        """The folder at `path`; a root may itself be a link. Raises: OSError."""
        self._path = path
        self._handle = os.open(path, _FOLDER_FLAGS) if handle is None and _HAS_HANDLES else handle

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

    def entry_kind(self, name: str) -> EntryKind | None:
        """What stands there, without following links; `None` if nothing does. Raises: OSError."""
        try:
            mode = self._stat(name).st_mode
        except FileNotFoundError:
            return None
        return mode_to_entry_kind(mode)

    def mode(self, name: str) -> int:
        """The permission bits of what stands there. Raises: OSError."""
        return stat.S_IMODE(self._stat(name).st_mode) & 0o777

    def open_folder(self, name: str, *, create: bool = False) -> WritableFolder:
        """The folder `name`, not through a link; made first if asked. Raises: OSError."""
        path = self._path_argument(name)
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, dir_fd=self._handle)
        if self._handle is None:
            if self.entry_kind(name) is not EntryKind.FOLDER:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return WritableFolder(path)
        handle = os.open(path, _FOLDER_FLAGS | _NO_FOLLOW, dir_fd=self._handle)
        return WritableFolder(os.path.join(self._path, name), handle)

    def create_file(self, name: str, data: bytes, mode: int = 0o644, *, fsync: bool = True) -> None:
        """Make a new file and bring it to the disk. Raises: OSError if the name is taken."""
        descriptor = os.open(self._path_argument(name), _CREATE_FLAGS, 0o600, dir_fd=self._handle)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            if fsync:
                os.fsync(descriptor)

    def write_file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Make or replace a regular file, all or nothing. Raises: OSError, NotAFile."""
        if self.entry_kind(name) not in (None, EntryKind.FILE):
            raise NotAFile(name)
        with self.staging_name() as temporary:
            self.create_file(temporary, data, mode)
            self.rename(temporary, name)
        self.sync()

    def create_folder(
        self, name: str, files: Mapping[str, tuple[bytes, int]], *, fsync: bool = True
    ) -> None:
        """Make a new folder with files, by path and mode, all or nothing. Raises: OSError.

        What nobody reads after a crash need not be synced.
        """
        with self.staging_name() as temporary:
            self._write_files(temporary, files, fsync=fsync)
            self.rename(temporary, name)
        if fsync:
            self.sync()

    def _write_files(
        self, name: str, files: Mapping[str, tuple[bytes, int]], *, fsync: bool = True
    ) -> None:
        with self.open_folder(name, create=True) as staging:
            for path, (data, mode) in files.items():
                staging.create_nested_file(path, data, mode, fsync=fsync)
            if fsync:
                staging.sync()

    def replace_folder(self, name: str, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Put a folder with `files` where `name` stands; the old one stays until that is whole.

        Where the system cannot exchange two names in one step, a process that is killed in between
        leaves the old folder aside: see `recover`. Call both with the folder locked.
        Raises: OSError.
        """
        with self.staging_name() as temporary:
            self._write_files(temporary, files)
            self.exchange_folder(name, temporary)
        self.sync()
        self.remove_replaced(name)

    def exchange_folder(self, name: str, replacement: str) -> None:
        """Put the folder `by` where `name` stands; the old one is then at `by`, or aside.

        Raises: OSError.
        """
        if self._swap_names(replacement, name):
            return
        aside = f"{REPLACED_PREFIX}{name}"
        self.rename(name, aside)
        try:
            self.rename(replacement, name)
        except BaseException:
            self.rename(aside, name)
            raise

    def remove_replaced(self, name: str) -> None:
        """Remove the folder that stood at `name`, if it was put aside."""
        with contextlib.suppress(OSError):  # the new one stands; `recover` gets what is left
            self.remove(f"{REPLACED_PREFIX}{name}")

    def write_link(self, name: str, target: str) -> None:
        """Make or replace a link to `text`, all or nothing. Raises: OSError, NotAFile."""
        if self.entry_kind(name) not in (None, EntryKind.LINK):
            raise NotAFile(name)
        with self.staging_name() as temporary:
            os.symlink(target, self._path_argument(temporary), dir_fd=self._handle)
            self.rename(temporary, name)
        self.sync()

    def remove_atomically(self, name: str) -> None:
        """Remove what stands there, whole or not at all. Raises: OSError."""
        with self.staging_name() as temporary:
            self.rename(name, temporary)
            self.sync()

    def recover(self) -> None:
        """Undo or finish what a killed process left behind. Raises: OSError."""
        for entry in self.list_names():
            name = entry.removeprefix(REPLACED_PREFIX)
            if name != entry and self.entry_kind(name) is None:
                self.rename(entry, name)
            elif _STAGING_NAME.fullmatch(entry):
                # What cannot be removed must not stand in the way of every later change.
                with contextlib.suppress(OSError):
                    self.remove(entry)

    def remove_stale_staging(self, before: float) -> None:
        """Remove what processes left unfinished before a time in seconds since 1970."""
        for entry in self.list_names():
            if _STAGING_NAME.fullmatch(entry):
                with contextlib.suppress(OSError):
                    if self._stat(entry).st_mtime < before:
                        self.remove(entry)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out that ask for the same; waits for them. Raises: OSError."""
        if sys.platform != "win32" and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        else:
            yield

    def create_nested_file(self, path: str, data: bytes, mode: int, *, fsync: bool = True) -> None:
        """Make a new file and the folders above it. Raises: OSError."""
        first, slash, rest = path.partition("/")
        if not slash:
            self.create_file(first, data, mode, fsync=fsync)
            return
        with self.open_folder(first, create=True) as below:
            below.create_nested_file(rest, data, mode, fsync=fsync)
            if fsync:
                below.sync()

    def rename(self, name: str, new: str) -> None:
        """Call what stands at `name` `new`; a file there is replaced. Raises: OSError."""
        handle = self._handle
        os.replace(
            self._path_argument(name),
            self._path_argument(new),
            src_dir_fd=handle,
            dst_dir_fd=handle,
        )

    def _swap_names(self, name: str, other: str) -> bool:
        # Imported here: only a replacement needs it, and it takes a while to load.
        from skillhall._internal.fs.atomic_swap import swap_names  # noqa: PLC0415

        return self._handle is not None and swap_names(self._handle, name, other)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with all it holds. Raises: OSError."""
        if self.entry_kind(name) is not EntryKind.FOLDER:
            os.unlink(self._path_argument(name), dir_fd=self._handle)
            return
        with self.open_folder(name) as below:
            for entry in below.list_names():
                below.remove(entry)
        os.rmdir(self._path_argument(name), dir_fd=self._handle)

    def list_names(self) -> list[str]:
        """The names in the folder, in order. Raises: OSError."""
        return sorted(os.listdir(self._path if self._handle is None else self._handle))

    def sync(self) -> None:
        """Bring renames to the disk, where the file system can."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)

    @contextlib.contextmanager
    def staging_name(self) -> Iterator[str]:
        """A name nobody uses, for something unfinished; what is left of it is removed."""
        temporary = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                self.remove(temporary)

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(self._path_argument(name), dir_fd=self._handle, follow_symlinks=False)

    def _path_argument(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self._path, name)


def replace_file(folder: str, name: str, data: bytes) -> None:
    """Give the regular file `name` other bytes and keep its mode. Raises: OSError, NotAFile."""
    with WritableFolder(folder) as base:
        if base.entry_kind(name) is not EntryKind.FILE:
            raise NotAFile(name)
        base.write_file(name, data, base.mode(name))


def rename_file(folder: str, name: str, new_name: str) -> None:
    """Call the regular file `name` `new`. Raises: OSError, NotAFile, Conflict."""
    with WritableFolder(folder) as base:
        if base.entry_kind(name) is not EntryKind.FILE:
            raise NotAFile(name)
        # Where case does not count, both names are the one file, and the listing has only one.
        if new_name in base.list_names() or (
            base.entry_kind(new_name) is not None and name.lower() != new_name.lower()
        ):
            raise Conflict(new_name)
        base.rename(name, new_name)
        base.sync()


def create_folder(parent: str, name: str, files: dict[str, bytes]) -> None:
    """Make the folder `name` with `files` in it, all or nothing. Raises: OSError, Conflict."""
    # Whoever clears up in `parent` must not take what is staged here for a leftover.
    with WritableFolder(parent) as base, base.lock():
        if base.entry_kind(name) is not None:
            raise Conflict(name)
        try:
            base.create_folder(name, {path: (data, 0o644) for path, data in files.items()})
        except OSError:
            if base.entry_kind(name) is not None:  # somebody was faster
                raise Conflict(name) from None
            raise
