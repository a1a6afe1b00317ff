"""Candidates: possible skills found by a scan, not judged yet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.fs.signatures import get_size, pack_signature
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import (
    MAX_FRONTMATTER_BYTES,
    MAX_SKILL_MD_BYTES,
    SKILL_MD,
    is_frontmatter_complete,
)
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from skillhall._internal.fs.handles import Folder, FolderHandle
    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.skill.finding import FindingRow
    from skillhall._internal.sources.folder.candidate_codec import EncodedFields

HEAD_SIZE = 4096  # bytes; enough for nearly every frontmatter


# Stat signature of a file: mtime, ctime, size and inode. An edit that restores the mtime still
# changes the ctime.
Signature: TypeAlias = tuple[int, int, int, int]


def to_signature(stat_result: os.stat_result) -> Signature:
    """Return the signature of a file, which shows whether the file has changed."""
    return stat_result.st_mtime_ns, stat_result.st_ctime_ns, stat_result.st_size, stat_result.st_ino


class Candidate(NamedTuple):
    """Possible skill: its parsed head and its location."""

    folder: str  # relative to the root, "" for the root itself
    file: str  # "" if there is no SKILL.md
    name: str = ""
    description: str = ""
    hidden: bool = False
    fields: Frontmatter | EncodedFields = EMPTY_FRONTMATTER
    signature: PackedSignature | None = None
    is_flat: bool = False  # a file `name.md` without a folder of its own
    real_folder: FolderHandle | None = None  # target of the link to the folder, if there is one
    real_file: FolderHandle | None = None  # target of SKILL.md, if it is a link
    findings: tuple[FindingRow, ...] = ()


def is_larger_than_head(candidate: Candidate) -> bool:
    """Whether a scan reads only the start of the SKILL.md."""
    return candidate.signature is not None and get_size(candidate.signature) > HEAD_SIZE


def build_broken_candidate(
    folder: str, finding: Finding, file: str = SKILL_MD, *, is_flat: bool = False
) -> Candidate:
    """Build a candidate that has a finding instead of content."""
    return Candidate(folder, file, is_flat=is_flat, findings=(finding,))


class RawHead(NamedTuple):
    """Head of a possible skill's file, not parsed yet."""

    folder: str  # relative to the root
    file: str
    folder_name: str | None  # `None` for a flat file
    data: bytes
    size: int  # of the file
    signature: PackedSignature | None  # `None` if it is not needed
    real_folder: FolderHandle | None = None
    real_file: FolderHandle | None = None
    finding: Finding | None = None  # from the walker, about the file's name

    def to_location(self) -> Candidate:
        """Return the candidate without its content."""
        return Candidate(
            self.folder,
            self.file,
            is_flat=self.folder_name is None,
            real_folder=self.real_folder,
            real_file=self.real_file,
        )


def read_head(
    folder: Folder,
    path: str,
    name: str | None,
    file: str = SKILL_MD,
    real_folder: FolderHandle | None = None,
) -> RawHead:
    """Read the head of a file in an open folder. Raises: OSError, NotAFile.

    Its data is empty if the file is too large for a SKILL.md.
    """
    descriptor, stat = folder.open_file(file)
    try:
        data = b"" if stat.st_size > MAX_SKILL_MD_BYTES else os.read(descriptor, HEAD_SIZE)
        if len(data) == HEAD_SIZE and not is_frontmatter_complete(data):
            # The bytes beyond the limit let the parser report that the frontmatter is too long.
            limit = MAX_FRONTMATTER_BYTES + 2 * HEAD_SIZE
            while len(data) < limit and (chunk := os.read(descriptor, limit - len(data))):
                data += chunk
    finally:
        os.close(descriptor)
    return RawHead(path, file, name, data, stat.st_size, pack_signature(stat), real_folder)


def to_read_finding(error: OSError | NotAFile) -> Finding:
    """Return the finding for a file that could not be opened or read."""
    if isinstance(error, NotAFile):
        message, hint = f"{error.path} is not a regular file", "replace it with a text file"
        return Finding(Code.NOT_A_FILE, message, 1, hint)
    message = f"the file cannot be read: {format_os_error(error)}"
    return Finding(Code.UNREADABLE, message, 1, "check its permissions")


def format_os_error(error: OSError) -> str:
    """Return the system's error message, without the path."""
    return (error.strerror or type(error).__name__).lower()
