"""Parser of raw heads. A separate module: scans from the head cache never load it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parser import (
    build_too_large_finding,
    find_encoding_error,
    parse_frontmatter,
)
from skillhall._internal.sources.folder.candidate import Candidate, build_broken_candidate
from skillhall._internal.sources.folder.candidate_codec import encode_frontmatter

if TYPE_CHECKING:
    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import RawHead


def parse_candidate(raw: RawHead, key_case: KeyCase, *, keep_signature: bool = True) -> Candidate:
    """Parse a raw head.

    Signatures need much memory, so `keep_signature=False` drops them where they are not used.
    """
    path, file, name, data, signature, real, real_file, finding = raw
    size = signature[2]
    if size > MAX_SKILL_MD_BYTES:
        return build_broken_candidate(
            path, build_too_large_finding(size), file, is_flat=name is None
        )
    is_complete = len(data) >= size
    head = parse_frontmatter(data, name, key_case, complete=is_complete)
    # `None` means that the frontmatter does not end in the bytes that were read. Parsing them as a
    # complete file gives the finding.
    front, findings, _ = head or parse_frontmatter(data, name, key_case)
    # The body must be text too. Bytes after the head are checked when the body is read.
    error = find_encoding_error(data, is_complete=is_complete)
    if error is not None and all(other.code is not error.code for other in findings):
        findings = (*findings, error)
    if finding is not None:
        findings = (finding, *findings)
    return Candidate(
        path,
        file,
        front.name,
        front.description,
        front.hidden,
        encode_frontmatter(front),
        signature if keep_signature else None,
        name is None,
        real,
        real_file,
        findings,
    )
