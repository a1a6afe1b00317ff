"""Parser of raw heads.

This is a separate module because scans from the head cache do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from skillhall._internal.skill.parser import (
    build_too_large_finding,
    find_encoding_error,
    parse_frontmatter,
    parse_plain_head,
)
from skillhall._internal.skill.yaml.values import HIDDEN_FIELD
from skillhall._internal.sources.folder.candidate import Candidate, build_broken_candidate
from skillhall._internal.sources.folder.candidate_codec import encode_frontmatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill.parsed import Frontmatter, KeyCase
    from skillhall._internal.sources.folder.candidate import RawHead
    from skillhall._internal.sources.folder.parsed_heads import ParsedHeads


def parse_candidates(
    heads: Sequence[RawHead],
    key_case: KeyCase,
    *,
    keep_signatures: bool = True,
    parsed_heads: ParsedHeads | None = None,
) -> list[Candidate]:
    """Parse raw heads; `parsed_heads` stores the results.

    Signatures need much memory, so `keep_signatures=False` drops them where they are not used.
    """
    candidates = [_parse_candidate(head, key_case, keep_signatures) for head in heads]
    if parsed_heads is not None:
        parsed_heads.add(heads, candidates)
    return candidates


def _parse_candidate(raw: RawHead, key_case: KeyCase, keep_signature: bool) -> Candidate:  # noqa: FBT001 - keywords are slower
    path, file, name, data, size, signature, real, real_file, finding = raw
    if size > MAX_SKILL_MD_BYTES:
        return build_broken_candidate(
            path, build_too_large_finding(size), file, is_flat=name is None
        )
    is_complete = len(data) >= size
    plain = parse_plain_head(data, name, key_case, is_complete=is_complete)
    front, findings = plain or _parse_unusual_head(data, name, key_case, is_complete=is_complete)
    if finding is not None:
        findings = (finding, *findings)
    fields, title, description = front
    hidden = HIDDEN_FIELD in fields and front.hidden
    signature_or_none = signature if keep_signature else None
    # As `Candidate(…)`, in half the time.
    return tuple.__new__(
        Candidate,
        (
            path,
            file,
            title,
            description,
            hidden,
            encode_frontmatter(front),
            signature_or_none,
            name is None,
            real,
            real_file,
            findings,
        ),
    )


def _parse_unusual_head(
    data: bytes, name: str | None, key_case: KeyCase, *, is_complete: bool
) -> tuple[Frontmatter, tuple[Finding, ...]]:
    head = parse_frontmatter(data, name, key_case, complete=is_complete)
    # `None` means that the frontmatter does not end in the bytes that were read. Parsing them as a
    # complete file gives the finding.
    front, findings, _ = head or parse_frontmatter(data, name, key_case)
    # The body must be text too. Bytes after the head are checked when the body is read.
    error = find_encoding_error(data, is_complete=is_complete)
    if error is not None and all(other.code is not error.code for other in findings):
        findings = (*findings, error)
    return front, findings
