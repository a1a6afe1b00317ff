"""Disk cache of GitHub responses, for conditional requests and for outages.

Every file name is a hash that includes the token, so that tokens do not share entries. Entries that
are missing, damaged or not writable are cache misses, never errors.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import zlib

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall.errors import NotAFile, TooLarge

CAPACITY = 64 * 1024 * 1024  # bytes
_MAX_ENTRY_SIZE = CAPACITY // 2  # bytes
_MAX_UNPACKED_SIZE = 4 * CAPACITY  # bytes
_MIN_DISK_SIZE = 4096  # bytes; the block size of most file systems
_DIGEST_SIZE = hashlib.sha256().digest_size
_FOLDER = "github"


class GitHubCache:
    """Cached responses for one server and token; disabled without a directory."""

    def __init__(self, directory: str, server: str, token: str) -> None:
        self._path = os.path.join(directory, _FOLDER) if directory else ""
        self._key_prefix = f"{server}\0{token}"

    def read(self, kind: str, *key: str) -> bytes | None:
        """Return the entry of a key, if it is intact."""
        if not self._path:
            return None
        try:
            with open_root(self._path) as folder:
                data = read_file(folder, self._file_name(kind, key), _MAX_ENTRY_SIZE)
        except (OSError, NotAFile, TooLarge):
            return None
        digest, packed = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
        if hashlib.sha256(packed).digest() != digest:
            return None
        with contextlib.suppress(zlib.error):
            return zlib.decompress(packed)
        return None

    def write(self, kind: str, *key: str, data: bytes) -> None:
        """Write an entry atomically."""
        packed = zlib.compress(data, 1)
        packed = hashlib.sha256(packed).digest() + packed
        if not self._path or len(packed) > _MAX_ENTRY_SIZE or len(data) > _MAX_UNPACKED_SIZE:
            return
        with contextlib.suppress(OSError, NotAFile):
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            with WritableFolder(self._path) as folder:
                folder.write_file(self._file_name(kind, key), packed, 0o600)

    def evict(self, capacity: int = CAPACITY) -> None:
        """Remove the oldest entries until the rest fits into `capacity` bytes."""
        if not self._path:
            return
        with contextlib.suppress(OSError), WritableFolder(self._path) as folder:
            files = []
            for name in folder.list_names():
                with contextlib.suppress(OSError):
                    status = os.lstat(os.path.join(self._path, name))
                    if stat.S_ISREG(status.st_mode):
                        size = max(status.st_size, _MIN_DISK_SIZE)
                        files.append((status.st_mtime_ns, size, name))
            for _, size, name in sorted(files, reverse=True):
                capacity -= size
                if capacity < 0:
                    with contextlib.suppress(OSError):  # removed by another process
                        folder.remove(name)

    def _file_name(self, kind: str, key: tuple[str, ...]) -> str:
        return hashlib.sha256("\0".join((self._key_prefix, kind, *key)).encode()).hexdigest()
