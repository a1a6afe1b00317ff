"""The warm index: what the heads of a root's skills said, so that only changed ones are read.

One file for each root, replaced as a whole: two processes can write at once and the last one wins.
It is a cache: if it is missing, foreign, damaged or outdated, the heads are read again.

The file holds `marshal` data behind a checksum. `marshal` trusts its input, so a file counts only
if it is whole, belongs to us, and nobody else can write it.
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
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.sources.folder.candidate_codec import decode_candidates, encode_candidates
from skillhall._version import VERSION
from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.walker import Scan

# Raise it whenever the parser, a check or the encoding changes what is written, between releases.
FORMAT = 2
_CHECKSUM = 4  # bytes
_LARGE = 4 * 1024 * 1024  # bytes; about 10,000 skills
_TEMPORARY_PREFIX = ".new-"
_ABANDONED_AFTER = 3600  # seconds after which a file that was never finished is nobody's
_WRITABLE_BY_OTHERS = 0o022
_BINARY = getattr(os, "O_BINARY", 0)
_READ_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# A file written twice within the clock's grain keeps its stat: what is this young is not trusted.
CLOCK_GRANULARITY = (
    2_000_000_000  # nanoseconds; the coarsest file system in use counts in two seconds
)


class HeadCache:
    """The index files below one cache folder."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.join(directory, "heads")

    def is_large(self, real_root: str, keys: KeyCase) -> bool:
        """Whether loading what is known takes long enough to do something else meanwhile."""
        try:
            return os.stat(self._path(real_root, keys)).st_size > _LARGE
        except OSError:
            return False

    def load(self, real_root: str, keys: KeyCase) -> Mapping[str, Candidate]:
        """What is known about the skills below a root; empty if nothing can be trusted."""
        try:
            body = _read_payload(self._path(real_root, keys), _header(real_root, keys))
            return {} if body is None else {row[0]: row for row in decode_candidates(body)}
        except (OSError, TooLarge, ValueError, EOFError, TypeError, KeyError):
            return {}

    def save(self, real_root: str, keys: KeyCase, scan: Scan, started_ns: int) -> None:
        """Keep what `scan` found; `started` is the time in nanoseconds when it began."""
        if scan.reused_count == len(scan.candidates):
            return
        settled = [c for c in scan.candidates if _is_cacheable(c, started_ns)]
        if scan.reused_count == len(settled):
            return
        with contextlib.suppress(OSError):
            _write_file(self._path(real_root, keys), _header(real_root, keys), settled)

    def _path(self, real_root: str, keys: KeyCase) -> str:
        return os.path.join(self.directory, f"{zlib.crc32(_header(real_root, keys)):08x}")


def _header(real_root: str, keys: KeyCase) -> bytes:
    """What a file starts with: it says what it is about, so that file names may collide."""
    python = f"{sys.version_info[:2]}, marshal {marshal.version}"
    version = f"skillhall {VERSION}, heads {FORMAT}, python {python}"
    return f"{version}\n{keys.value}\n{real_root}\0".encode("utf-8", "surrogatepass")


def now_ns() -> int:
    """The clock that file times are compared with, in nanoseconds."""
    return time.time_ns()


def _is_cacheable(candidate: Candidate, started: int) -> bool:
    signature = candidate.signature
    if signature is None or candidate.real_folder is not None or candidate.real_file is not None:
        return False
    if not candidate.folder or candidate.file != SKILL_MD:
        return False  # flat files, and the root itself, whose name may be an alias
    modified, changed, _, _ = signature
    return max(modified, changed) < started - CLOCK_GRANULARITY


def _read_payload(path: str, header: bytes) -> memoryview | None:
    descriptor = os.open(path, _READ_FLAGS)
    try:
        if not _is_trusted_file(found := os.fstat(descriptor)):
            return None
        data = read_descriptor(descriptor, found.st_size, "the index")
    finally:
        os.close(descriptor)
    start = len(header) + _CHECKSUM
    body = memoryview(data)[start:]
    # The checksum is against damage by accident; against others, owner and mode were checked.
    checksum = int.from_bytes(data[len(header) : start], "big")
    return body if data.startswith(header) and checksum == zlib.crc32(body) else None


def _is_trusted_file(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS


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
    """Remove what processes left behind that were killed while they wrote."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMPORARY_PREFIX):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_AFTER:
                        os.unlink(entry.path)
