"""Copies of git repositories, one per repository and token, each used by one process at a time.

```text
<cache>/git/<key>/lock              held while the copy is used
<cache>/git/<key>/repository        bare: commits and trees, and the files of skills that were read
<cache>/git/<key>/new               one that is being made; swept if it was left behind
<cache>/git/<key>/seen/<ref>        the commit that the ref had when it was last read in full
```

Git inherits the lock. If its reader is killed, git runs on for a while, and the next reader waits
for it: no two of them ever write to the same copy, and a lock file of git's own is a leftover.
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
from skillhall._internal.sources.ref import is_commit_id

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK_POLL_INTERVAL = 0.05  # seconds between two looks at a lock
_LEFTOVER_PATTERNS = ("objects/pack/tmp_*", "objects/tmp_*", "*.lock", "refs/skillhall/*.lock")


class CachedRef(NamedTuple):
    """The commit that a ref had, and when that was so."""

    commit: str
    checked_at: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class CachedClone:
    """The copy of one repository, while we hold its lock."""

    folder: str
    lock: int  # its descriptor, for git to inherit

    @property
    def repository_path(self) -> str:
        """Where the copy is, or will be."""
        return os.path.join(self.folder, "repository")

    @property
    def exists(self) -> bool:
        """Whether there is a copy."""
        return os.path.isdir(self.repository_path)

    @contextlib.contextmanager
    def replace_clone(self) -> Iterator[str]:
        """A place for a new copy; it takes the old one's place if all goes well."""
        new = os.path.join(self.folder, "new")
        _remove_tree(new)
        try:
            yield new
            _remove_tree(self.repository_path)
            os.rename(new, self.repository_path)
        finally:
            _remove_tree(new)

    def read_ref(self, ref: str) -> CachedRef | None:
        """What is known about a ref."""
        try:
            with open(os.path.join(self.folder, "seen", ref_file_name(ref)), "rb") as file:
                found = json.loads(file.read(1000))
            seen = CachedRef(str(found["commit"]), float(found["when"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return seen if is_commit_id(seen.commit) else None

    def record_ref(self, ref: str, commit: str) -> None:
        """Remember the commit of a ref, which was read in full. Raises: OSError."""
        seen = json.dumps({"ref": ref, "commit": commit, "when": time.time()})
        with (
            WritableFolder(self.folder) as folder,
            folder.open_folder("seen", create=True) as notes,
        ):
            notes.write_file(ref_file_name(ref), seen.encode())

    def forget_ref(self, ref: str) -> None:
        """Drop what is known about a ref that is gone."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, "seen", ref_file_name(ref)))

    def remove_leftovers(self) -> None:
        """Remove what an interrupted run left; without any good commit, remove everything."""
        _remove_tree(os.path.join(self.folder, "new"))
        for pattern in _LEFTOVER_PATTERNS:
            for left in glob.glob(os.path.join(glob.escape(self.repository_path), pattern)):
                with contextlib.suppress(OSError):
                    os.unlink(left)
        if not self._has_recorded_refs():
            _remove_tree(self.repository_path)

    def _has_recorded_refs(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(os.listdir(os.path.join(self.folder, "seen")))
        return False


def ref_file_name(ref: str) -> str:
    """A name for what is kept about a ref, which may hold slashes."""
    return hashlib.sha256(ref.encode()).hexdigest()[:32]


def _remove_tree(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def is_cached(cache_directory: str, key: str) -> bool:
    """Whether something is kept under the key."""
    return os.path.isdir(os.path.join(cache_directory, "git", key))


@contextlib.contextmanager
def lock_clone(cache_directory: str, key: str, deadline: float) -> Iterator[CachedClone]:
    """The copy under `key`, for us alone; a failure leaves no more than was there before.

    Raises: TimeoutError if others use it for too long, OSError.
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
                    # Whoever waits for this lock notices that it is gone, and asks again.
                    _remove_tree(folder)
    finally:
        with contextlib.suppress(OSError):  # others keep copies there
            os.rmdir(os.path.dirname(folder))


def delete_clone(cache_directory: str, key: str) -> None:
    """Remove what is kept under the key, unless somebody uses it."""
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
            if _is_lock_current(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _acquire_lock(descriptor: int, deadline: float) -> None:
    while sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(_LOCK_POLL_INTERVAL)
        else:
            return


def _is_lock_current(descriptor: int, path: str) -> bool:
    """Whether the lock that we hold is the one that others would ask for."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
