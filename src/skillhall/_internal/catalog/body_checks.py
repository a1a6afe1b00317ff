"""Checks of skill bodies, which a scan of heads does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parser import find_encoding_error
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall._internal.sources.folder.candidate import HEAD_SIZE
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Scan


def check_bodies(root: Root, scan: Scan) -> Scan:
    """The scan with a finding for each SKILL.md that is not text beyond its head."""
    checked = [_check_body(root, candidate) for candidate in scan.candidates]
    pairs = zip(checked, scan.candidates, strict=True)
    changed = sum(new is not old for new, old in pairs)
    # What changed is not what the index knows: it must be written again.
    return scan._replace(
        candidates=checked, reused_count=min(scan.reused_count, len(checked) - changed)
    )


def _check_body(root: Root, candidate: Candidate) -> Candidate:
    if candidate.signature is None or candidate.signature[2] <= HEAD_SIZE:
        return candidate  # the scan has read and checked all of it
    try:
        fault = find_encoding_error(_read_skill_md(root, candidate))
    except SkillhallError:
        return candidate  # it changed since the scan; reading it will say how
    if fault is None or any(known.code is fault.code for known in candidate.findings):
        return candidate
    return candidate._replace(findings=(*candidate.findings, fault))


def _read_skill_md(root: Root, candidate: Candidate) -> bytes:
    place, path = candidate.real_folder or FolderHandle(root.path, candidate.folder), candidate.file
    if candidate.real_file is not None:
        place, path = FolderHandle(candidate.real_file.root), candidate.real_file.relative_path
    return read_file_at(place, RelativePath.parse(path), MAX_SKILL_MD_BYTES)
