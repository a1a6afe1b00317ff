"""Cache files: verified before use, and replaced atomically.

A cache file contains `marshal` data after a header and a checksum. `marshal` trusts its input, so a
file is used only if it is complete, belongs to the current user, and is not writable by others.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
import sys
import time

from skillhall._version import VERSION

# Increase it if the parser, a check or the encoding changes the cached values between releases.
FORMAT = 4
CACHE_FOLDER = "heads"
CHECKSUM_SIZE = 4  # bytes
# Nanoseconds. A second edit within one tick of the clock does not change the stat signature, so
# younger files are not cached. FAT has the coarsest clock in use, with ticks of two seconds.
CLOCK_GRANULARITY = 2_000_000_000
_TEMPORARY_PREFIX = ".new-"
_ABANDONED_AFTER = 3600  # seconds; older temporary files belong to killed processes
_WRITABLE_BY_OTHERS = 0o022
_BINARY = getattr(os, "O_BINARY", 0)
# A link in place of the file must not be followed, and a named pipe must not block.
_READ_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def build_version_line() -> str:
    """Return the versions of everything that determines the content of a cache file."""
    python = f"{sys.version_info[:2]}, marshal {marshal.version}"
    return f"skillhall {VERSION}, heads {FORMAT}, python {python}"


def open_cache_file(path: str) -> int:
    """Open a cache file; links are not followed. Raises: OSError."""
    return os.open(path, _READ_FLAGS)


def is_trusted_file(status: os.stat_result) -> bool:
    """Whether only the current user can have written the file."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


class NewCacheFile:
    """Temporary file that replaces a cache file when it is complete."""

    def __init__(self, path: str) -> None:
        """Create the temporary file. Raises: OSError."""
        directory = os.path.dirname(path)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _remove_abandoned(directory)
        self._path = path
        self._temporary = os.path.join(directory, f"{_TEMPORARY_PREFIX}{os.urandom(8).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
        self._file = open(os.open(self._temporary, flags, 0o600), "wb")  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """Append `data`. Raises: OSError."""
        self._file.write(data)

    def commit(self, position: int = 0, checksum: bytes = b"") -> None:
        """Write the checksum at `position` and replace the old file. Raises: OSError."""
        try:
            self._file.seek(position)
            self._file.write(checksum)
            self._file.close()
            os.replace(self._temporary, self._path)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the temporary file."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


def _remove_abandoned(directory: str) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMPORARY_PREFIX):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_AFTER:
                        os.unlink(entry.path)
