"""Head cache: parsed heads of SKILL.md files on disk.

A scan reads only files whose stat signature has changed. Each root has one cache file, which is
replaced atomically; if two processes write it, the last one wins. If the file is missing, damaged,
outdated or not trusted, the heads are read again.

`cache_file` decides which files are trusted.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from typing import TYPE_CHECKING

from skillhall._internal.catalog.cache_file import (
    CACHE_FOLDER,
    CHECKSUM_SIZE,
    CLOCK_GRANULARITY,
    NewCacheFile,
    build_version_line,
    is_trusted_file,
    open_cache_file,
)
from skillhall._internal.fs.handles import read_descriptor
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.folder.candidate_codec import decode_candidates, encode_candidates
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.walker import Scan


class HeadCache:
    """Head caches of all roots, below one cache folder."""

    def __init__(self, directory: str) -> None:
        self.directory: str = os.path.join(directory, CACHE_FOLDER)

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
    return f"{build_version_line()}\n{keys.value}\n{real_root}\0".encode("utf-8", "surrogatepass")


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
    descriptor = open_cache_file(path)
    try:
        if not is_trusted_file(status := os.fstat(descriptor)):
            return None
        data = read_descriptor(descriptor, status.st_size, "the head cache")
    finally:
        os.close(descriptor)
    start = len(header) + CHECKSUM_SIZE
    payload = memoryview(data)[start:]
    # The checksum detects damage; owner and mode protect against other users.
    checksum = int.from_bytes(data[len(header) : start], "big")
    return payload if data.startswith(header) and checksum == zlib.crc32(payload) else None


def _write_file(path: str, header: bytes, candidates: Sequence[Candidate]) -> None:
    file = NewCacheFile(path)
    try:
        file.write(header + bytes(CHECKSUM_SIZE))
        checksum = 0
        for part in encode_candidates(candidates):
            file.write(part)
            checksum = zlib.crc32(part, checksum)
        file.commit(len(header), checksum.to_bytes(CHECKSUM_SIZE, "big"))
    except BaseException:
        file.discard()
        raise
