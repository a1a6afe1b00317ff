"""Folders that nobody changes: what a source held at one moment, for as long as somebody reads it.

```text
<cache>/prompts/<run>/<copy>/…      one run per process, locked while it lives; the others are swept
```
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
    """The files of one source at one moment; its folder goes when nobody holds it any more."""

    __slots__ = ("__weakref__", "digest", "folder")

    def __init__(self, folder: str, digest: str) -> None:
        self.folder = folder
        self.digest = digest
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def exists(self) -> bool:
        """Whether it is still there: people may clear caches at any time."""
        return os.path.isdir(self.folder)


class CheckoutStore:
    """The copies of one process. Nothing is made before the first one."""

    def __init__(self, cache_directory: str) -> None:
        self._base = os.path.join(cache_directory, "prompts")
        self._lock = threading.Lock()
        self._process_folder: _ProcessFolder | None = None

    def put(self, tree: FileTree) -> Checkout:
        """A copy of the files. Raises: OSError."""
        with self._lock:
            if self._process_folder is None or not os.path.isdir(self._process_folder.folder):
                self._process_folder = _create_process_folder(self._base)
            run = self._process_folder.folder
        name = secrets.token_hex(8)
        with WritableFolder(run) as folder:
            # Nobody reads it after a crash.
            files = {path: (data, _FILE_MODE) for path, data in tree.files.items()}
            folder.create_folder(name, files, fsync=False)
        return Checkout(os.path.join(run, name), hash_files(tree.files))

    def close(self) -> None:
        """Remove all of them."""
        with self._lock:
            run, self._process_folder = self._process_folder, None
        if run is not None:
            run.remove()


def hash_files(files: Mapping[str, bytes]) -> str:
    """One digest over all paths and bytes."""
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{len(path.encode())} {path} {len(files[path])} ".encode())
        whole.update(files[path])
    return whole.hexdigest()


class _ProcessFolder:
    """The folder of one process, which it holds a lock on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else None
        if sys.platform != "win32" and self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def __del__(self) -> None:
        self._release()


def _create_process_folder(base: str) -> _ProcessFolder:
    """A folder for this process; those of processes that are gone are removed. Raises: OSError."""
    os.makedirs(base, mode=0o700, exist_ok=True)
    with WritableFolder(base) as folder, folder.lock():
        for name in folder.list_names():
            _remove_if_unlocked(os.path.join(base, name))
        run = os.path.join(base, secrets.token_hex(8))
        os.mkdir(run, 0o700)
        return _ProcessFolder(run)


def _remove_if_unlocked(folder: str) -> None:
    with contextlib.suppress(OSError):  # somebody is at work there, or it is gone
        _ProcessFolder(folder).remove()
