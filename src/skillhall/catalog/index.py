"""The warm index: what the heads of a root's skills said, so that a scan reads only what changed.

One file for each root, replaced as a whole: two processes can write at once and the last one wins.
It is a cache; a missing, foreign, damaged or outdated file only means that the heads are read again.

The file is `marshal` data behind a digest: nothing else loads 60,000 heads in a tenth of a second.
`marshal` trusts its input, so a file counts only if it belongs to us and nobody else can write it.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import stat
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from skillhall.skill.finding import Code, Finding
from skillhall.skill.model import Frontmatter
from skillhall.sources.candidate import SKILL_MD, Known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall.skill.model import KeyCase
    from skillhall.sources.candidate import Candidate, KnownHeads
    from skillhall.sources.directory import Scan

# Raise it whenever the parser or a check changes what a head yields.
FORMAT = 1
_MAGIC = b"skillhall heads\n"
_DIGEST = 32  # bytes
_OTHERS_MAY_WRITE = 0o022

# A file written twice within the clock's grain keeps its stat: what is this young is not trusted.
GRAIN = 2_000_000_000  # nanoseconds; the coarsest file system in use counts in two seconds


class HeadIndex:
    """The index files below one cache folder."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, "heads")

    def known(self, real_root: str, keys: KeyCase) -> KnownHeads:
        """What is known about the skills below a root; empty if nothing can be trusted."""
        try:
            rows = _load(self._file(real_root, keys))
        except (OSError, ValueError, EOFError, TypeError):
            return {}
        return {} if rows is None else _KnownRows(rows)

    def remember(self, real_root: str, keys: KeyCase, scan: Scan, started: int) -> None:
        """Keep what `scan` found; `started` is the time in nanoseconds when it began."""
        old = [c for c in scan.candidates if _is_settled(c, started)]
        if scan.reused == len(old):
            return
        with contextlib.suppress(OSError):
            _save(self._file(real_root, keys), [_row(candidate) for candidate in old])

    def _file(self, real_root: str, keys: KeyCase) -> str:
        version = f"{FORMAT} {sys.version_info[:2]} {marshal.version}"
        key = f"{version}\0{keys.value}\0{real_root}".encode("utf-8", "surrogatepass")
        return os.path.join(self._directory, hashlib.sha256(key).hexdigest()[:32])


def now() -> int:
    """The clock that file times are compared with, in nanoseconds."""
    return time.time_ns()


class _KnownRows(dict[str, Any]):
    """Rows by folder; a row becomes a `Known` when somebody asks for it."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        super().__init__((row[0], row) for row in rows)

    def get(self, folder: str, default: Any = None) -> Any:  # noqa: ANN401 - the mapping's own shape
        """What is known about the skill in `folder`."""
        row = dict.get(self, folder)
        if row is None:
            return default
        _, signature, fields, name, description, findings = row
        return Known(
            signature,
            Frontmatter(fields, name, description),
            tuple([Finding(Code(code), *rest) for code, *rest in findings]) if findings else (),
        )


def _row(candidate: Candidate) -> tuple[Any, ...]:
    front = candidate.frontmatter
    return (
        candidate.folder,
        tuple(candidate.signature or ()),
        front.fields,
        front.name,
        front.description,
        tuple([(str(f.code), f.message, f.line, f.hint) for f in candidate.findings]),
    )


def _is_settled(candidate: Candidate, started: int) -> bool:
    signature = candidate.signature
    if signature is None or candidate.file != SKILL_MD:
        return False
    return max(signature[0], signature[1]) < started - GRAIN


def _load(path: str) -> list[tuple[Any, ...]] | None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not _is_ours(os.fstat(file.fileno())):
            return None
        data = file.read()
    start = len(_MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != _digest(body):
        return None
    rows = marshal.loads(body)  # noqa: S302 - our own file, checked above
    return rows if isinstance(rows, list) else None


def _is_ours(found: os.stat_result) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & _OTHERS_MAY_WRITE


def _save(path: str, rows: list[tuple[Any, ...]]) -> None:
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    body = marshal.dumps(rows)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".new-")
    try:
        with open(descriptor, "wb") as file:
            file.write(_MAGIC + _digest(body))
            file.write(body)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
