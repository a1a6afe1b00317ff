"""Content store: file contents by digest, verified on every read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import FolderHandle, open_folder_at, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.skill.bundle import sha256_hex
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARD_NAME = re.compile(r"[0-9a-f]{2}")  # of a folder: the first two digits of its digests
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # contents may be private


class ContentStore:
    """Contents below a data directory. Only `put` raises for disk errors."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, "contents")

    def put(self, data: bytes) -> str:
        """Store `data` and return its SHA-256 in hexadecimal. Raises: OSError."""
        digest = sha256_hex(data)
        os.makedirs(self._directory, _FOLDER_MODE, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(self._directory, digest[:2]), _FOLDER_MODE)
        with self._lock_shard(digest[:2]) as folder:
            if self._read(digest) == data:
                # A sweep may run before this use is recorded, so the content must not look old.
                os.utime(os.path.join(self._directory, digest[:2], digest))
                return digest
            try:
                folder.write_file(digest, data, _FILE_MODE)
            except NotAFile:
                message = os.strerror(errno.EEXIST)
                raise FileExistsError(errno.EEXIST, message, digest) from None
        return digest

    def find(self, digest: str) -> bytes | None:
        """Return the bytes with this digest; `None` if they are missing or damaged.

        Damaged contents are deleted.
        """
        if not _DIGEST.fullmatch(digest):
            return None
        data = self._read(digest)
        if data is None or sha256_hex(data) == digest:
            return data
        with contextlib.suppress(OSError), self._lock_shard(digest[:2]) as folder:
            # Another process may have written the right bytes in the meantime.
            data = self._read(digest)
            if data is not None and sha256_hex(data) != digest:
                folder.remove(digest)
        return None

    def sweep(self, referenced: Collection[str], grace: float, clock: Callable[[], float]) -> int:
        """Delete contents not in `referenced`; return the number of deleted files.

        Only files unused for `grace` seconds are deleted, including leftovers of killed processes.
        """
        oldest, removed, shards = clock() - grace, 0, []
        with contextlib.suppress(OSError):
            shards = sorted(filter(_SHARD_NAME.fullmatch, os.listdir(self._directory)))
        for shard in shards:
            with contextlib.suppress(OSError), self._lock_shard(shard) as folder:
                for name in folder.list_names():
                    is_ours = name.startswith(STAGING_PREFIX) or _DIGEST.fullmatch(name)
                    path = os.path.join(self._directory, shard, name)
                    if is_ours and name not in referenced and os.lstat(path).st_mtime < oldest:
                        folder.remove(name)
                        removed += 1
        return removed

    @contextlib.contextmanager
    def _lock_shard(self, name: str) -> Iterator[WritableFolder]:
        with (
            WritableFolder(self._directory) as root,
            root.open_folder(name) as folder,
            folder.lock(),
        ):
            yield folder

    def _read(self, digest: str) -> bytes | None:
        """Read the stored bytes unverified; `None` if that fails."""
        try:
            with open_folder_at(FolderHandle(self._directory, digest[:2])) as folder:
                return read_file(folder, digest, sys.maxsize - 1)  # it adds 1 to the limit
        except (OSError, NotAFile):
            return None
