"""Writing into a folder: staged beside the target, synced, then renamed; never through a link."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

from skillhall.errors import Conflict, NotAFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | getattr(os, "O_BINARY", 0)
_HAS_HANDLES = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_PREFIX = ".skillhall-"
_PERMISSIONS = 0o777


class _Base:
    """The folder that names are relative to: a handle where the system has them, else its path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.handle = os.open(path, _FOLDER) if _HAS_HANDLES else None

    def name(self, name: str) -> str:
        """`name` as the system's calls want it."""
        return name if self.handle is not None else os.path.join(self._path, name)  # noqa: PTH118

    def sync(self) -> None:
        """Make renames last."""
        if self.handle is not None:
            # Some file systems cannot sync a folder; the rename itself has been done.
            with contextlib.suppress(OSError):
                os.fsync(self.handle)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[_Base]:
    base = _Base(path)
    try:
        yield base
    finally:
        if base.handle is not None:
            os.close(base.handle)


def replace_file(folder: str, name: str, data: bytes) -> None:
    """Give the regular file `name` other bytes and keep its mode. Raises: OSError, NotAFile."""
    with _opened(folder) as base:
        found = os.stat(base.name(name), dir_fd=base.handle, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise NotAFile(name)
        staged = f"{_PREFIX}{secrets.token_hex(8)}"
        try:
            _write_new(base, staged, data, stat.S_IMODE(found.st_mode) & _PERMISSIONS)
            _rename(base, staged, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(base.name(staged), dir_fd=base.handle)
            raise
        base.sync()


def rename_file(folder: str, name: str, new: str) -> None:
    """Call the regular file `name` `new`. Raises: OSError, NotAFile, Conflict."""
    with _opened(folder) as base:
        found = os.stat(base.name(name), dir_fd=base.handle, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise NotAFile(name)
        with contextlib.suppress(FileNotFoundError):
            other = os.stat(base.name(new), dir_fd=base.handle, follow_symlinks=False)
            # Where case does not count, both names are the one file.
            if not os.path.samestat(found, other):
                raise Conflict(new)
        _rename(base, name, new)
        base.sync()


def create_folder(parent: str, name: str, files: dict[str, bytes]) -> None:
    """Make the folder `name` with `files` in it, all or nothing. Raises: OSError, Conflict."""
    with _opened(parent) as base:
        _refuse_existing(base, name)
        staged = f"{_PREFIX}{secrets.token_hex(8)}"
        os.mkdir(base.name(staged), dir_fd=base.handle)
        try:
            for path, data in files.items():
                _write_new(base, f"{staged}/{path}", data, 0o644)
            _refuse_existing(base, name)
            _rename(base, staged, name)
        except BaseException:
            _discard(base, staged, files)
            raise
        base.sync()


def _refuse_existing(base: _Base, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(base.name(name), dir_fd=base.handle, follow_symlinks=False)
        raise Conflict(name)


def _write_new(base: _Base, name: str, data: bytes, mode: int) -> None:
    descriptor = os.open(base.name(name), _NEW, 0o666, dir_fd=base.handle)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        file.write(data)
        file.flush()
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _rename(base: _Base, name: str, new: str) -> None:
    os.replace(base.name(name), base.name(new), src_dir_fd=base.handle, dst_dir_fd=base.handle)


def _discard(base: _Base, staged: str, files: dict[str, bytes]) -> None:
    with contextlib.suppress(OSError):
        for path in files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(base.name(f"{staged}/{path}"), dir_fd=base.handle)
        os.rmdir(base.name(staged), dir_fd=base.handle)
