"""Candidates: places that may be skills, read but not judged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall.errors import NotAFile
from skillhall.skill.finding import Code, Finding
from skillhall.skill.frontmatter import MAX_FRONTMATTER
from skillhall.skill.model import EMPTY, Frontmatter
from skillhall.skill.parse import MAX_SKILL_MD, large_skill_md, parse_head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall.skill.model import KeyCase
    from skillhall.sources.safety import Folder, Place

SKILL_MD = "SKILL.md"
HEAD = 4096  # bytes; holds nearly every frontmatter


class Signature(NamedTuple):
    """What changes when a file does: even an edit that restores the time moves `changed`."""

    modified: int
    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Signature:
        """The signature of a file."""
        return cls(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


class Known(NamedTuple):
    """What an index remembers of one SKILL.md."""

    signature: Signature
    frontmatter: Frontmatter
    findings: tuple[Finding, ...]


KnownHeads: TypeAlias = "Mapping[str, Known]"  # by folder, relative to the root


class Candidate(NamedTuple):
    """A place that may be a skill: what its head says, and where it stands."""

    folder: str  # relative to the root, "" for the root itself
    file: str  # "" if there is no such file
    frontmatter: Frontmatter
    findings: tuple[Finding, ...]
    signature: Signature | None = None
    is_flat: bool = False
    real: Place | None = None  # where a link led, if one was followed


def broken(folder: str, finding: Finding, file: str = SKILL_MD) -> Candidate:
    """A candidate of which nothing could be read."""
    return Candidate(folder, file, EMPTY, (finding,))


def read_candidate(
    folder: Folder, path: str, name: str | None, keys: KeyCase, file: str = SKILL_MD
) -> Candidate:
    """The candidate in an open folder; without a `name` it is a flat file.

    Raises: OSError, NotAFile.
    """
    descriptor, stat = folder.file(file)
    is_flat = name is None
    try:
        if stat.st_size > MAX_SKILL_MD:
            return Candidate(path, file, EMPTY, (large_skill_md(stat.st_size),), None, is_flat)
        data = os.read(descriptor, HEAD)
        head = parse_head(data, name, keys, complete=len(data) < HEAD)
        if head is None:
            data += _read_more(descriptor)
            head = parse_head(data, name, keys)
    finally:
        os.close(descriptor)
    return Candidate(path, file, head.frontmatter, head.findings, Signature.of(stat), is_flat)


def _read_more(descriptor: int) -> bytes:
    """The rest of a long frontmatter; anything beyond the limit only proves that it is too long."""
    wanted = MAX_FRONTMATTER + HEAD
    chunks = []
    while wanted > 0 and (chunk := os.read(descriptor, wanted)):
        chunks.append(chunk)
        wanted -= len(chunk)
    return b"".join(chunks)


def explain_failure(error: OSError | NotAFile) -> Finding:
    """The finding for a file that could not be opened or read."""
    if isinstance(error, NotAFile):
        return Finding(
            Code.NOT_A_FILE, f"{error.path} is not a regular file", 1, "replace it by a text file"
        )
    return Finding(
        Code.UNREADABLE, f"the file cannot be read: {reason(error)}", 1, "check its permissions"
    )


def reason(error: OSError) -> str:
    """The system's words for what went wrong, without the path."""
    return (error.strerror or type(error).__name__).lower()
