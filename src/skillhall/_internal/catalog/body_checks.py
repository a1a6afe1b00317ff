"""Checks of skill bodies, which a scan of heads does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.reader import read_main_file
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.parser import find_encoding_error
from skillhall._internal.sources.folder.candidate import HEAD_SIZE
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Scan


def check_bodies(root: Root, scan: Scan) -> Scan:
    """Add a finding to each candidate whose SKILL.md is not text beyond its head."""
    checked = [_check_body(root, candidate) for candidate in scan.candidates]
    unchanged = sum(new is old for new, old in zip(checked, scan.candidates, strict=True))
    # The head cache is written again if fewer candidates were reused than there are.
    return scan._replace(candidates=checked, reused_count=min(scan.reused_count, unchanged))


def _check_body(root: Root, candidate: Candidate) -> Candidate:
    if candidate.signature is None or candidate.signature[2] <= HEAD_SIZE:
        return candidate  # the scan has read the complete file
    folder = candidate.real_folder or FolderHandle(root.path, candidate.folder)
    try:
        finding = find_encoding_error(read_main_file(folder, candidate.file, candidate.real_file))
    except SkillhallError:
        return candidate  # changed since the scan; reading the skill will report it
    if finding is None or any(known.code is finding.code for known in candidate.findings):
        return candidate
    return candidate._replace(findings=(*candidate.findings, finding))
