"""Binary encoding of candidates, for the head cache.

`marshal` is by far the fastest way to load tens of thousands of rows. It trusts its input, so it
only reads bytes that this program wrote: see `catalog.head_cache` for how a file is authenticated.
Frontmatter stays encoded until more than the name and the description is needed.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any, TypeAlias

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.candidate import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.skill.finding import FindingRow

    EncodedFields: TypeAlias = bytes
    Row: TypeAlias = tuple[Any, ...]

_CODES = {code.value: code for code in Code}
_NAMES = {code.value: code.value for code in Code}  # equal codes become one plain string


def encode_candidates(candidates: Iterable[Candidate]) -> bytes:
    """Encode candidates."""
    return marshal.dumps([_encode_row(candidate) for candidate in candidates])


def _encode_row(candidate: Candidate) -> Row:
    fields, findings = candidate.fields, candidate.findings
    encoded = encode_frontmatter(fields) if isinstance(fields, Frontmatter) else fields
    handles = candidate.real_folder, candidate.real_file
    locations = [None if h is None else (h.root, h.relative_path) for h in handles]
    rows = tuple(encode_findings(findings)) if findings else ()
    return (*candidate[:5], encoded, *candidate[6:8], *locations, rows)


def decode_candidates(data: bytes) -> list[Candidate]:
    """Decode candidates. Raises: ValueError, EOFError, TypeError, KeyError."""
    rows = marshal.loads(data)  # noqa: S302 - only ever our own bytes, see above
    make = Candidate._make
    return [
        make(row)
        if row[8] is row[9]  # both `None`: not reached through a link
        else make((*row[:8], *[h and FolderHandle(*h) for h in row[8:10]], row[10]))
        for row in rows
    ]


def encode_findings(findings: Iterable[FindingRow]) -> list[FindingRow]:
    """Encode findings as rows for `marshal`, which has no enumerations."""
    return [(_NAMES[row[0]], *row[1:]) for row in findings]


def decode_findings(rows: Iterable[Row]) -> tuple[Finding, ...]:
    """Decode findings. Raises: KeyError, TypeError."""
    return tuple([Finding(_CODES[code], *rest) for code, *rest in rows])


def encode_frontmatter(front: Frontmatter) -> EncodedFields:
    """Encode frontmatter; a dictionary would need five times the memory."""
    original, name, description = front
    fields: dict[str, Any] = original.copy()
    # The candidate has these two already; an ellipsis marks where they belong.
    if name and fields.get("name") == name:
        fields["name"] = ...
    if description and fields.get("description") == description:
        fields["description"] = ...
    return marshal.dumps(fields)


def decode_frontmatter(
    fields: Frontmatter | EncodedFields, name: str, description: str
) -> Frontmatter:
    """Return the frontmatter of a candidate, decoded if necessary."""
    if isinstance(fields, Frontmatter):
        return fields
    decoded: dict[str, Any] = marshal.loads(fields)  # noqa: S302 - our own bytes
    for key, text in (("name", name), ("description", description)):
        if decoded.get(key) is ...:
            decoded[key] = text
    return Frontmatter.from_fields(decoded)
