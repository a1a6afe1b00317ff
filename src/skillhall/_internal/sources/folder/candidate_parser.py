"""Raw heads to candidates. Loading the parser takes a while; a warm scan does without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parser import (
    build_too_large_finding,
    find_encoding_error,
    parse_frontmatter,
)
from skillhall._internal.sources.folder.candidate import Candidate, build_broken_candidate

if TYPE_CHECKING:
    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import RawHead


def parse_candidate(raw: RawHead, key_case: KeyCase, *, keep_signature: bool = True) -> Candidate:
    """What a raw head says; the signature stays only if asked for, it takes much memory."""
    path, file, name, data, signature, real, real_file, note = raw
    size = signature[2]
    if size > MAX_SKILL_MD_BYTES:
        return build_broken_candidate(
            path, build_too_large_finding(size), file, is_flat=name is None
        )
    complete = len(data) >= size
    head = parse_frontmatter(data, name, key_case, complete=complete)
    front, findings, _ = head or parse_frontmatter(data, name, key_case)
    # A body that is not text is no body. What lies beyond the head, `catalog.bodies` checks.
    fault = find_encoding_error(data, is_complete=complete)
    if fault is not None and all(one.code is not fault.code for one in findings):
        findings = (*findings, fault)
    if note is not None:
        findings = (note, *findings)
    return Candidate(
        path,
        file,
        front.name,
        front.description,
        front.hidden,
        front,
        signature if keep_signature else None,
        name is None,
        real,
        real_file,
        findings,
    )
