"""Atomic writes below a root: staged next to the target, synced, then renamed.

A crash leaves the old content or the new, never a mixture, and nothing is written through a link.
On systems without directory handles, the same methods use paths.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from typing import TYPE_CHECKING

from skillhall._internal.fs.atomic_swap import swap_names
from skillhall._internal.fs.handles import (
    REPLACED_PREFIX,
    EntryKind,
    Folder,
    mode_to_entry_kind,
)
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall.errors import Conflict, NotAFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

# Matches complete names: lock files share the prefix, and must not be removed as leftovers.
_STAGING_NAME = re.compile(
    rf"{re.escape(STAGING_PREFIX)}[0-9a-f]{{16}}|{re.escape(REPLACED_PREFIX)}.*", re.DOTALL
)
_HAS_HANDLES = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)


class WritableFolder(Folder):
    """Open folder for writing. Every `name` is a single path component."""

    __slots__ = ()

    def __init__(self, path: str, handle: int | None = None) -> None:
        """Open the folder at `path`; a root may itself be a link. Raises: OSError."""
        if handle is None and _HAS_HANDLES:
            handle = os.open(path, _FOLDER_FLAGS)
        super().__init__(handle, path)

    def entry_kind(self, name: str) -> EntryKind | None:
        """Return the kind of an entry, `None` if it does not exist. Raises: OSError."""
        try:
            return mode_to_entry_kind(self.stat(name).st_mode)
        except FileNotFoundError:
            return None

    def mode(self, name: str) -> int:
        """Return the permission bits of an entry. Raises: OSError."""
        return stat.S_IMODE(self.stat(name).st_mode) & 0o777

    def open_folder(self, name: str, *, create: bool = False) -> WritableFolder:
        """Open a subfolder, created if requested; links are rejected. Raises: OSError."""
        path = self._locate(name)
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
        """Create a file; `fsync` syncs it to disk. Raises: FileExistsError, OSError."""
        with self.open_new_file(name) as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            if fsync:
                os.fsync(file.fileno())

    def open_new_file(self, name: str) -> BinaryIO:
        """Create a file that only its owner can access, and open it for writing.

        Raises: FileExistsError, OSError.
        """
        return open(os.open(self._locate(name), _CREATE_FLAGS, 0o600, dir_fd=self._handle), "wb")

    def write_file(self, name: str, data: bytes, mode: int = 0o644, *, fsync: bool = True) -> None:
        """Create or replace a regular file atomically. Raises: OSError, NotAFile.

        Without `fsync`, a crash of the system can leave an empty file.
        """
        if self.entry_kind(name) not in (None, EntryKind.FILE):
            raise NotAFile(name)
        with self.staging_name() as temporary:
            self.create_file(temporary, data, mode, fsync=fsync)
            self.rename(temporary, name)
        if fsync:
            self.sync()

    def create_folder(
        self, name: str, files: Mapping[str, tuple[bytes, int]], *, fsync: bool = True
    ) -> None:
        """Create a folder with files atomically. Raises: OSError.

        `files` maps paths to content and mode. A folder that is not needed after a crash can be
        created without `fsync`.
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
        """Replace the folder `name` atomically with one that has `files`. Raises: OSError.

        If the system cannot swap two names, a process killed between two renames leaves the old
        folder under a backup name, which `recover` restores. Call both with the folder locked.
        """
        with self.staging_name() as temporary:
            self._write_files(temporary, files)
            self.exchange_folder(name, temporary)
        self.sync()
        self.remove_replaced(name)

    def exchange_folder(self, name: str, replacement: str) -> None:
        """Move the folder `replacement` to `name`. Raises: OSError.

        The old folder is then at `replacement` or, without an atomic swap, at its backup name.
        """
        if self._handle is not None and swap_names(self._handle, replacement, name):
            return
        backup = f"{REPLACED_PREFIX}{name}"
        self.rename(name, backup)
        try:
            self.rename(replacement, name)
        except BaseException:
            self.rename(backup, name)
            raise

    def remove_replaced(self, name: str) -> None:
        """Remove the backup of a replaced folder, if there is one."""
        with contextlib.suppress(OSError):  # the replacement is complete; `recover` cleans up
            self.remove(f"{REPLACED_PREFIX}{name}")

    def write_link(self, name: str, target: str) -> None:
        """Create or replace a link atomically. Raises: OSError, NotAFile."""
        if self.entry_kind(name) not in (None, EntryKind.LINK):
            raise NotAFile(name)
        with self.staging_name() as temporary:
            os.symlink(target, self._locate(temporary), dir_fd=self._handle)
            self.rename(temporary, name)
        self.sync()

    def remove_atomically(self, name: str) -> None:
        """Remove an entry, completely or not at all. Raises: OSError."""
        with self.staging_name() as temporary:
            self.rename(name, temporary)
            self.sync()

    def recover(self) -> None:
        """Undo or complete the changes of a killed process. Raises: OSError.

        Call it with the folder locked, so that it does not touch changes in progress.
        """
        for entry in self.list_names():
            name = entry.removeprefix(REPLACED_PREFIX)
            if name != entry and self.entry_kind(name) is None:
                self.rename(entry, name)
            elif _STAGING_NAME.fullmatch(entry):
                # A leftover that cannot be removed must not block later changes.
                with contextlib.suppress(OSError):
                    self.remove(entry)

    def remove_stale_staging(self, before: float) -> None:
        """Remove unfinished entries last modified before the Unix time `before`."""
        for entry in self.list_names():
            if _STAGING_NAME.fullmatch(entry):
                with contextlib.suppress(OSError):
                    if self.stat(entry).st_mtime < before:
                        self.remove(entry)

    @contextlib.contextmanager
    def lock(self, *, waits: bool = True) -> Iterator[None]:
        """Wait for an exclusive lock on the folder and hold it. Raises: OSError.

        If it does not wait, a folder that is locked raises BlockingIOError. On Windows, nothing is
        locked.
        """
        if self._handle is None:
            yield
        else:
            with lock_handle(self._handle, waits=waits):
                yield

    def create_nested_file(self, path: str, data: bytes, mode: int, *, fsync: bool = True) -> None:
        """Create a file and its parent folders. Raises: OSError."""
        first, slash, rest = path.partition("/")
        if not slash:
            self.create_file(first, data, mode, fsync=fsync)
            return
        with self.open_folder(first, create=True) as subfolder:
            subfolder.create_nested_file(rest, data, mode, fsync=fsync)
            if fsync:
                subfolder.sync()

    def rename(self, name: str, new: str) -> None:
        """Rename an entry; an existing file `new` is replaced. Raises: OSError."""
        source, target, handle = self._locate(name), self._locate(new), self._handle
        os.replace(source, target, src_dir_fd=handle, dst_dir_fd=handle)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with its content. Raises: OSError."""
        if self.entry_kind(name) is not EntryKind.FOLDER:
            os.unlink(self._locate(name), dir_fd=self._handle)
            return
        with self.open_folder(name) as subfolder:
            for entry in subfolder.list_names():
                subfolder.remove(entry)
        os.rmdir(self._locate(name), dir_fd=self._handle)

    def list_names(self) -> list[str]:
        """Return the names in the folder, sorted. Raises: OSError."""
        return sorted(os.listdir(self._path if self._handle is None else self._handle))

    def sync(self) -> None:
        """Sync renames to disk, where the file system supports it."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)

    @contextlib.contextmanager
    def staging_name(self) -> Iterator[str]:
        """Yield an unused name for an unfinished entry, which is removed at the end."""
        temporary = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                self.remove(temporary)


@contextlib.contextmanager
def lock_handle(handle: int, *, waits: bool = True) -> Iterator[None]:
    """Hold an exclusive lock on an open file or folder, as in `WritableFolder.lock`."""
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        yield


def replace_file(folder: str, name: str, data: bytes) -> None:
    """Replace the content of a regular file and keep its mode.

    Raises: OSError, NotAFile.
    """
    with WritableFolder(folder) as base:
        if base.entry_kind(name) is not EntryKind.FILE:
            raise NotAFile(name)
        base.write_file(name, data, base.mode(name))


def rename_file(folder: str, name: str, new_name: str) -> None:
    """Rename a regular file. Raises: OSError, NotAFile, Conflict."""
    with WritableFolder(folder) as base:
        if base.entry_kind(name) is not EntryKind.FILE:
            raise NotAFile(name)
        # On a case-insensitive file system, `A` and `a` both exist, but only one is listed.
        if new_name in base.list_names() or (
            base.entry_kind(new_name) is not None and name.lower() != new_name.lower()
        ):
            raise Conflict(new_name)
        base.rename(name, new_name)
        base.sync()


def create_folder(parent: str, name: str, files: dict[str, bytes]) -> None:
    """Create a folder with `files` atomically. Raises: OSError, Conflict."""
    # The lock keeps `recover` in another process from removing the staged folder.
    with WritableFolder(parent) as base, base.lock():
        if base.entry_kind(name) is not None:
            raise Conflict(name)
        try:
            base.create_folder(name, {path: (data, 0o644) for path, data in files.items()})
        except OSError:
            if base.entry_kind(name) is not None:  # created by another process in between
                raise Conflict(name) from None
            raise
