"""Cache of git clones, one per repository and token, with locks between processes.

```text
<cache>/git/<key>/lock              locked while the clone is in use
<cache>/git/<key>/repository        bare clone: commits, trees, and files of skills that were read
<cache>/git/<key>/new               clone in progress; removed if it was interrupted
<cache>/git/<key>/seen/<hash>       commit of a ref at its last complete read
```

Git inherits the lock. If the process that started git is killed, git may run on for a while, and
the next process waits for it. So there is never more than one git that writes to a clone, and a
process that has the lock can remove git's own lock files: they are leftovers.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.sources.source_text import is_commit_id

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK_POLL_INTERVAL = 0.05  # seconds
_LEFTOVER_PATTERNS = ("objects/pack/tmp_*", "objects/tmp_*", "*.lock", "refs/skillhall/*.lock")


class CachedRef(NamedTuple):
    """Commit that a ref had when it was last checked."""

    commit: str
    checked_at: float  # Unix time


@dataclass(frozen=True, slots=True)
class CachedClone:
    """Cached clone of one repository. Its lock must be held."""

    folder: str
    lock: int  # descriptor of the lock, for git to inherit

    @property
    def repository_path(self) -> str:
        """Path of the clone, which may not exist yet."""
        return os.path.join(self.folder, "repository")

    @property
    def exists(self) -> bool:
        """Whether there is a clone."""
        return os.path.isdir(self.repository_path)

    @contextlib.contextmanager
    def replace_clone(self) -> Iterator[str]:
        """Yield the path for a new clone, which replaces the old one on success."""
        new = os.path.join(self.folder, "new")
        _remove_tree(new)
        try:
            yield new
            _remove_tree(self.repository_path)
            os.rename(new, self.repository_path)
        finally:
            _remove_tree(new)

    def read_ref(self, ref: str) -> CachedRef | None:
        """Return the cached commit of a ref, if there is one."""
        try:
            with open(os.path.join(self.folder, "seen", ref_file_name(ref)), "rb") as file:
                record = json.loads(file.read(1000))
            cached = CachedRef(str(record["commit"]), float(record["when"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cached if is_commit_id(cached.commit) else None

    def record_ref(self, ref: str, commit: str) -> None:
        """Record the commit of a ref after a complete read. Raises: OSError."""
        record = json.dumps({"ref": ref, "commit": commit, "when": time.time()})
        with WritableFolder(self.folder) as folder, folder.open_folder("seen", create=True) as refs:
            refs.write_file(ref_file_name(ref), record.encode())

    def forget_ref(self, ref: str) -> None:
        """Remove the record of a ref that no longer exists."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, "seen", ref_file_name(ref)))

    def remove_leftovers(self) -> None:
        """Remove files of an interrupted run, and the clone if it was never fully read."""
        _remove_tree(os.path.join(self.folder, "new"))
        for pattern in _LEFTOVER_PATTERNS:
            for path in glob.glob(os.path.join(glob.escape(self.repository_path), pattern)):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        with contextlib.suppress(OSError):
            if os.listdir(os.path.join(self.folder, "seen")):
                return
        _remove_tree(self.repository_path)


def ref_file_name(ref: str) -> str:
    """Return the file name for a ref, which may contain slashes."""
    return hashlib.sha256(ref.encode()).hexdigest()[:32]


def _remove_tree(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def is_cached(cache_directory: str, key: str) -> bool:
    """Whether there is a cache folder for the key."""
    return os.path.isdir(os.path.join(cache_directory, "git", key))


@contextlib.contextmanager
def lock_clone(cache_directory: str, key: str, deadline: float) -> Iterator[CachedClone]:
    """Lock the clone with this key; a failed read leaves no new files behind.

    Raises: TimeoutError if another process holds the lock past the deadline, OSError.
    """
    folder = os.path.join(cache_directory, "git", key)
    try:
        with _lock_folder(folder, deadline) as lock:
            cache = CachedClone(folder, lock)
            cache.remove_leftovers()
            try:
                yield cache
            except BaseException:
                cache.remove_leftovers()
                raise
            finally:
                if not cache.exists:
                    # A process waiting for this lock notices that its file is gone and retries.
                    _remove_tree(folder)
    finally:
        with contextlib.suppress(OSError):  # not empty: other clones are cached
            os.rmdir(os.path.dirname(folder))


def delete_clone(cache_directory: str, key: str) -> None:
    """Delete the clone with this key, unless it is in use."""
    folder = os.path.join(cache_directory, "git", key)
    if os.path.isdir(folder):
        with contextlib.suppress(OSError), _lock_folder(folder, time.monotonic()):
            _remove_tree(folder)


@contextlib.contextmanager
def _lock_folder(folder: str, deadline: float) -> Iterator[int]:
    path = os.path.join(folder, "lock")
    while True:
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:  # a folder was removed in between
            continue
        try:
            _acquire_lock(descriptor, deadline)
            is_current = False
            with contextlib.suppress(FileNotFoundError):  # another process removed the folder
                status = os.stat(path, follow_symlinks=False)
                is_current = os.path.samestat(os.fstat(descriptor), status)
            if is_current:
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _acquire_lock(descriptor: int, deadline: float) -> None:
    # Windows has no `flock`: clones are not locked there.
    while sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(_LOCK_POLL_INTERVAL)
        else:
            return
