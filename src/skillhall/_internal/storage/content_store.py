"""Content store: file contents by digest, verified on every read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import FolderHandle, folder_at, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.skill.bundle import sha256_hex
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARD_NAME = re.compile(r"[0-9a-f]{2}")  # the first two digits of the digests in it
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
            if self._read(digest) != data:
                _write_content(folder, digest, data)
            else:
                # A sweep that started before this use is recorded must not find it old.
                os.utime(os.path.join(self._directory, digest[:2], digest))
        return digest

    def find(self, digest: str) -> bytes | None:
        """Return the bytes with this digest; `None` if they are missing or damaged."""
        if not _DIGEST.fullmatch(digest):
            return None
        data = self._read(digest)
        if data is None or sha256_hex(data) == digest:
            return data
        with contextlib.suppress(OSError), self._lock_shard(digest[:2]) as folder:
            # Another process may have written the right bytes since.
            data = self._read(digest)
            if data is not None and sha256_hex(data) != digest:
                folder.remove(digest)
        return None

    def sweep(self, referenced: Collection[str], grace: float, clock: Callable[[], float]) -> int:
        """Delete contents not in `referenced` and unused for `grace` seconds; return their number.

        Leftovers of killed processes are deleted, too.
        """
        oldest = clock() - grace
        return sum(self._sweep_shard(name, referenced, oldest) for name in self._list_shards())

    def _sweep_shard(self, name: str, referenced: Collection[str], oldest: float) -> int:
        removed = 0
        with contextlib.suppress(OSError), self._lock_shard(name) as folder:
            for entry in folder.list_names():
                is_ours = entry.startswith(STAGING_PREFIX) or _DIGEST.fullmatch(entry)
                if is_ours and entry not in referenced and self._modified_at(name, entry) < oldest:
                    folder.remove(entry)
                    removed += 1
        return removed

    def _list_shards(self) -> list[str]:
        try:
            return [
                name for name in sorted(os.listdir(self._directory)) if _SHARD_NAME.fullmatch(name)
            ]
        except OSError:
            return []

    def _modified_at(self, folder: str, name: str) -> float:
        return os.lstat(os.path.join(self._directory, folder, name)).st_mtime

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
            with folder_at(FolderHandle(self._directory, digest[:2])) as folder:
                return read_file(folder, digest, sys.maxsize - 1)
        except (OSError, NotAFile):
            return None


def _write_content(folder: WritableFolder, name: str, data: bytes) -> None:
    try:
        folder.write_file(name, data, _FILE_MODE)
    except NotAFile:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
