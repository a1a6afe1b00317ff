"""Head cache: parsed heads of SKILL.md files on disk.

A scan reads only files whose stat signature has changed. Each root has one cache file, which is
replaced atomically; of two processes, the last one wins. If the file is missing, damaged, outdated
or not trusted, the heads are read again.

The file contains `marshal` data after a checksum. `marshal` trusts its input, so a file is used
only if it is complete, belongs to the current user, and is not writable by others.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
import sys
import time
import zlib
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import read_descriptor
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.folder.candidate_codec import decode_candidates, encode_candidates
from skillhall._version import VERSION
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.walker import Scan

# Increase it if the parser, a check or the encoding changes the cached values between releases.
FORMAT = 2
_CHECKSUM = 4  # bytes
_LARGE = 4 * 1024 * 1024  # bytes; about 10,000 skills
_TEMPORARY_PREFIX = ".new-"
_ABANDONED_AFTER = 3600  # seconds; older temporary files belong to killed processes
_WRITABLE_BY_OTHERS = 0o022
_BINARY = getattr(os, "O_BINARY", 0)
# A link in place of the file must not be followed, and a named pipe must not block.
_READ_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# Nanoseconds. A second edit within one tick of the clock does not change the stat signature, so
# younger files are not cached. FAT has the coarsest clock in use, with ticks of two seconds.
CLOCK_GRANULARITY = 2_000_000_000


class HeadCache:
    """Head caches of all roots, below one cache folder."""

    def __init__(self, directory: str) -> None:
        self.directory: str = os.path.join(directory, "heads")

    def is_large(self, real_root: str, keys: KeyCase) -> bool:
        """Whether loading the cache is slow enough to do other work in parallel."""
        try:
            return os.stat(self._path(real_root, keys)).st_size > _LARGE
        except OSError:
            return False

    def load(self, real_root: str, keys: KeyCase) -> Mapping[str, Candidate]:
        """Load the candidates of a root by folder; empty if the cache cannot be used."""
        try:
            payload = _read_payload(self._path(real_root, keys), _header(real_root, keys))
            return {} if payload is None else {row[0]: row for row in decode_candidates(payload)}
        except (OSError, TooLarge, ValueError, EOFError, TypeError, KeyError):
            return {}

    def save(self, real_root: str, keys: KeyCase, scan: Scan, started_ns: int) -> None:
        """Save the candidates of a scan that started at `started_ns`."""
        if scan.reused_count == len(scan.candidates):
            return  # all heads came from the cache
        cacheable = [c for c in scan.candidates if _is_cacheable(c, started_ns)]
        if scan.reused_count == len(cacheable):
            return  # no other head can be cached yet
        with contextlib.suppress(OSError):
            _write_file(self._path(real_root, keys), _header(real_root, keys), cacheable)

    def _path(self, real_root: str, keys: KeyCase) -> str:
        return os.path.join(self.directory, f"{zlib.crc32(_header(real_root, keys)):08x}")


def _header(real_root: str, keys: KeyCase) -> bytes:
    # Names of cache files are short hashes and may collide; the header identifies the root.
    python = f"{sys.version_info[:2]}, marshal {marshal.version}"
    version = f"skillhall {VERSION}, heads {FORMAT}, python {python}"
    return f"{version}\n{keys.value}\n{real_root}\0".encode("utf-8", "surrogatepass")


def now_ns() -> int:
    """Return the time of the clock that file times are compared with."""
    return time.time_ns()


def _is_cacheable(candidate: Candidate, started: int) -> bool:
    signature = candidate.signature
    if signature is None or candidate.real_folder is not None or candidate.real_file is not None:
        return False
    if not candidate.folder or candidate.file != SKILL_MD:
        return False  # a flat file, or the root itself, whose name may be an alias
    modified, changed, _, _ = signature
    return max(modified, changed) < started - CLOCK_GRANULARITY


def _read_payload(path: str, header: bytes) -> memoryview | None:
    descriptor = os.open(path, _READ_FLAGS)
    try:
        if not _is_trusted_file(status := os.fstat(descriptor)):
            return None
        data = read_descriptor(descriptor, status.st_size, "the head cache")
    finally:
        os.close(descriptor)
    start = len(header) + _CHECKSUM
    payload = memoryview(data)[start:]
    # The checksum detects damage; owner and mode protect against other users.
    checksum = int.from_bytes(data[len(header) : start], "big")
    return payload if data.startswith(header) and checksum == zlib.crc32(payload) else None


def _is_trusted_file(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


def _write_file(path: str, header: bytes, candidates: Sequence[Candidate]) -> None:
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    _remove_abandoned(directory)
    temporary = os.path.join(directory, f"{_TEMPORARY_PREFIX}{os.urandom(8).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(header + bytes(_CHECKSUM))
            checksum = 0
            for part in encode_candidates(candidates):
                file.write(part)
                checksum = zlib.crc32(part, checksum)
            file.seek(len(header))
            file.write(checksum.to_bytes(_CHECKSUM, "big"))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _remove_abandoned(directory: str) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMPORARY_PREFIX):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_AFTER:
                        os.unlink(entry.path)
