"""Immutable checkouts of a source, deleted when no longer in use.

They are in `<cache>/prompts/<process>/<checkout>/`. A process holds a lock on its folder; unlocked
folders of dead processes are deleted when another process creates its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import sys
import threading
import weakref
from typing import TYPE_CHECKING

from skillhall._internal.fs.write import WritableFolder

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.sources.repo_layout import FileTree

_FILE_MODE = 0o600


class Checkout:
    """Files of a source at one moment. The folder is deleted with the object."""

    __slots__ = ("__weakref__", "digest", "folder")

    def __init__(self, folder: str, digest: str) -> None:
        self.folder = folder
        self.digest = digest
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def exists(self) -> bool:
        """Whether the folder still exists; users may clear the cache at any time."""
        return os.path.isdir(self.folder)


class CheckoutStore:
    """Checkouts of one process. Nothing is written to disk before the first `put`."""

    def __init__(self, cache_directory: str) -> None:
        self._base = os.path.join(cache_directory, "prompts")
        self._lock = threading.Lock()
        self._process_folder: _ProcessFolder | None = None

    def put(self, tree: FileTree) -> Checkout:
        """Write the files as a checkout. Raises: OSError."""
        with self._lock:
            if self._process_folder is None or not os.path.isdir(self._process_folder.folder):
                self._process_folder = _ProcessFolder.create(self._base)
            parent = self._process_folder.folder
        name = secrets.token_hex(8)
        with WritableFolder(parent) as folder:
            # No fsync: a checkout is never read after a crash.
            files = {path: (data, _FILE_MODE) for path, data in tree.files.items()}
            folder.create_folder(name, files, fsync=False)
        return Checkout(os.path.join(parent, name), hash_files(tree.files))

    def close(self) -> None:
        """Delete all checkouts."""
        with self._lock:
            folder, self._process_folder = self._process_folder, None
        if folder is not None:
            folder.remove()


def hash_files(files: Mapping[str, bytes]) -> str:
    """Return one digest of all paths and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{len(path.encode())} {path} {len(files[path])} ".encode())
        digest.update(files[path])
    return digest.hexdigest()


class _ProcessFolder:
    """Locked folder of one process. Raises: OSError if another process has locked it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = -1
        if sys.platform != "win32":
            self._lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @classmethod
    def create(cls, base: str) -> _ProcessFolder:
        """Create this process's folder; delete those of dead processes. Raises: OSError."""
        os.makedirs(base, mode=0o700, exist_ok=True)
        with WritableFolder(base) as folder, folder.lock():
            for name in folder.list_names():
                with contextlib.suppress(OSError):  # locked by its process, or already deleted
                    cls(os.path.join(base, name)).remove()
            path = os.path.join(base, secrets.token_hex(8))
            os.mkdir(path, 0o700)
            return cls(path)

    def remove(self) -> None:
        """Delete the folder and release its lock."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    __del__ = _release  # also closes the descriptor if `__init__` could not lock the folder
