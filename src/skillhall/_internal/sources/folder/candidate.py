"""Candidates: places that may be skills, read but not judged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import (
    MAX_FRONTMATTER_BYTES,
    MAX_SKILL_MD_BYTES,
    SKILL_MD,
    is_frontmatter_complete,
)
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder, FolderHandle
    from skillhall._internal.sources.folder.candidate_codec import EncodedFields

HEAD_SIZE = 4096  # bytes; holds nearly every frontmatter


# What changes when a file does: time of the last edit, of the last change of any kind (an edit that
# restores the first still moves this one), size, and inode.
Signature: TypeAlias = tuple[int, int, int, int]


def to_signature(stat_result: os.stat_result) -> Signature:
    """The signature of a file."""
    return stat_result.st_mtime_ns, stat_result.st_ctime_ns, stat_result.st_size, stat_result.st_ino


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
    real_folder: FolderHandle | None  # the folder that a link led to, if one was followed
    real_file: FolderHandle | None  # the file that SKILL.md is a link to, if it is one
    findings: tuple[Finding, ...]


def build_broken_candidate(
    folder: str, finding: Finding, file: str = SKILL_MD, *, is_flat: bool = False
) -> Candidate:
    """A candidate of which nothing could be read."""
    return Candidate(
        folder,
        file,
        "",
        "",
        False,  # noqa: FBT003
        EMPTY_FRONTMATTER,
        None,
        is_flat,
        None,
        None,
        (finding,),
    )


class RawHead(NamedTuple):
    """The first bytes of a file that may be a skill, not looked at yet."""

    folder: str  # the folder, relative to the root
    file: str
    folder_name: str | None  # the folder's name; `None` for a flat file
    data: bytes
    signature: Signature
    real_folder: FolderHandle | None = None
    real_file: FolderHandle | None = None
    finding: Finding | None = None  # what the walk noticed about it


def read_head(
    folder: Folder,
    path: str,
    name: str | None,
    file: str = SKILL_MD,
    real_folder: FolderHandle | None = None,
) -> RawHead:
    """The head of a file in an open folder. Raises: OSError, NotAFile."""
    descriptor, stat = folder.open_file(file)
    try:
        data = b"" if stat.st_size > MAX_SKILL_MD_BYTES else os.read(descriptor, HEAD_SIZE)
        if len(data) == HEAD_SIZE and not is_frontmatter_complete(data):
            data += _read_rest_of_frontmatter(descriptor)
    finally:
        os.close(descriptor)
    return RawHead(path, file, name, data, to_signature(stat), real_folder)


def _read_rest_of_frontmatter(descriptor: int) -> bytes:
    """The rest of a long frontmatter; anything beyond the limit only proves that it is too long."""
    wanted = MAX_FRONTMATTER_BYTES + HEAD_SIZE
    chunks = []
    while wanted > 0 and (chunk := os.read(descriptor, wanted)):
        chunks.append(chunk)
        wanted -= len(chunk)
    return b"".join(chunks)


def to_read_finding(error: OSError | NotAFile) -> Finding:
    """The finding for a file that could not be opened or read."""
    if isinstance(error, NotAFile):
        return Finding(
            Code.NOT_A_FILE, f"{error.path} is not a regular file", 1, "replace it by a text file"
        )
    return Finding(
        Code.UNREADABLE,
        f"the file cannot be read: {format_os_error(error)}",
        1,
        "check its permissions",
    )


def format_os_error(error: OSError) -> str:
    """The system's words for what went wrong, without the path."""
    return (error.strerror or type(error).__name__).lower()
