"""Heads that a scan has parsed, for checks that read the complete files afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillhall._internal.skill.parser import find_encoding_error, find_plain_fence
from skillhall._internal.sources.folder.candidate_codec import decode_frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.skill.finding import Finding
    from skillhall._internal.skill.parser import PlainHead
    from skillhall._internal.sources.folder.candidate import Candidate, RawHead

_FENCE_LENGTH = 4  # with the line break


class ParsedHeads:
    """Results of parsing, by the bytes of the frontmatter and the name of the folder.

    Only plain heads are stored; a listing of thousands of skills has few others.
    """

    def __init__(self) -> None:
        self._candidates: dict[tuple[bytes, str | None], Candidate] = {}

    def add(self, heads: Iterable[RawHead], candidates: Iterable[Candidate]) -> None:
        """Store the results for these heads."""
        for head, candidate in zip(heads, candidates, strict=True):
            data = head.data
            end = find_plain_fence(data)
            if end and not head.finding and not find_encoding_error(data, is_complete=False):
                self._candidates[data[: end + _FENCE_LENGTH], head.folder_name] = candidate

    def find(self, data: bytes, folder: str | None) -> PlainHead | None:
        """Return the head of a complete SKILL.md, as `parse_plain_head` does, if it is stored."""
        end = find_plain_fence(data)
        known = self._candidates.get((data[: end + _FENCE_LENGTH], folder)) if end else None
        if known is None or find_encoding_error(data) is not None:
            return None
        # Not rows, because the candidates have just been parsed.
        findings = cast("tuple[Finding, ...]", known.findings)
        return decode_frontmatter(known.fields, known.name, known.description), findings
