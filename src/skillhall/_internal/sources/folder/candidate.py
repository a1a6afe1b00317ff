"""Candidates: places that may be skills, read but not judged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import MAX_FRONTMATTER, MAX_SKILL_MD, SKILL_MD, is_closed
from skillhall._internal.skill.parsed import EMPTY, Frontmatter
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder, Place
    from skillhall._internal.sources.folder.candidate_codec import EncodedFields

HEAD = 4096  # bytes; holds nearly every frontmatter


# What changes when a file does: time of the last edit, of the last change of any kind (an edit that
# restores the first still moves this one), size, and inode.
Signature: TypeAlias = tuple[int, int, int, int]


def signature_of(found: os.stat_result) -> Signature:
    """The signature of a file."""
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class Candidate(NamedTuple):
    """A place that may be a skill: what its head says, and where it stands."""

    folder: str  # relative to the root, "" for the root itself
    file: str  # "" if there is no such file
    name: str
    description: str
    hidden: bool
    fields: Frontmatter | EncodedFields
    signature: Signature | None
    is_flat: bool
    real: Place | None  # the folder that a link led to, if one was followed
    real_file: Place | None  # the file that SKILL.md is a link to, if it is one
    findings: tuple[Finding, ...]


def broken(
    folder: str, finding: Finding, file: str = SKILL_MD, *, is_flat: bool = False
) -> Candidate:
    """A candidate of which nothing could be read."""
    return Candidate(folder, file, "", "", False, EMPTY, None, is_flat, None, None, (finding,))  # noqa: FBT003


class RawHead(NamedTuple):
    """The first bytes of a file that may be a skill, not looked at yet."""

    path: str  # the folder, relative to the root
    file: str
    name: str | None  # the folder's name; `None` for a flat file
    data: bytes
    signature: Signature
    real: Place | None = None
    real_file: Place | None = None
    note: Finding | None = None  # what the walk noticed about it


def read_head(
    folder: Folder, path: str, name: str | None, file: str = SKILL_MD, real: Place | None = None
) -> RawHead:
    """The head of a file in an open folder. Raises: OSError, NotAFile."""
    descriptor, stat = folder.file(file)
    try:
        data = b"" if stat.st_size > MAX_SKILL_MD else os.read(descriptor, HEAD)
        if len(data) == HEAD and not is_closed(data):
            data += _read_more(descriptor)
    finally:
        os.close(descriptor)
    return RawHead(path, file, name, data, signature_of(stat), real)


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
