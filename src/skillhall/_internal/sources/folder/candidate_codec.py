"""Candidates as bytes, for the warm index and for a second process that helps with a large scan.

`marshal` is by far the fastest way to load tens of thousands of rows. It trusts its input, so it
is only given bytes that this program wrote: see `catalog.index` for how a file proves that.
Fields stay encoded until somebody asks for more than a name and a description.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any, TypeAlias

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.candidate import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    EncodedFields: TypeAlias = bytes
    Row: TypeAlias = tuple[Any, ...]

_CODES = {code.value: code for code in Code}
_CHUNK = 2048  # candidates
_LENGTH = 8  # bytes


def encode_candidates(candidates: Sequence[Candidate]) -> Iterator[bytes]:
    """Candidates as chunks of bytes, so that large collections need little memory at once."""
    for start in range(0, len(candidates), _CHUNK):
        chunk = _encode_chunk(candidates[start : start + _CHUNK])
        yield len(chunk).to_bytes(_LENGTH, "big")
        yield chunk


def _encode_chunk(candidates: Sequence[Candidate]) -> bytes:
    """Findings that repeat are written once."""
    table: dict[tuple[Finding, ...], int] = {}
    rows = [_encode_row(candidate, table) for candidate in candidates]
    findings = [encode_findings(group) for group in table]
    return marshal.dumps((findings, rows))


def _encode_row(candidate: Candidate, table: dict[tuple[Finding, ...], int]) -> Row:
    number = table.setdefault(candidate.findings, len(table))
    fields = candidate.fields
    encoded = _encode_fields(fields) if isinstance(fields, Frontmatter) else fields
    return (
        *candidate[:5],
        encoded,
        *candidate[6:8],
        *map(_encode_location, candidate[8:10]),
        number,
    )


def _encode_location(location: FolderHandle | None) -> tuple[str, str] | None:
    return None if location is None else (location.root, location.relative_path)


def decode_candidates(data: bytes | memoryview) -> list[Candidate]:
    """The candidates that `encode_candidates` wrote.

    Raises: ValueError, EOFError, TypeError, KeyError.
    """
    view = memoryview(data)
    found: list[Candidate] = []
    while view:
        end = _LENGTH + int.from_bytes(view[:_LENGTH], "big")
        found += _decode_chunk(view[_LENGTH:end])
        view = view[end:]
    return found


def _decode_chunk(chunk: memoryview) -> list[Candidate]:
    findings, rows = marshal.loads(chunk)  # noqa: S302 - only ever our own bytes, see above
    table = [decode_findings(group) for group in findings]
    make = Candidate._make
    return [
        make((*row[:10], table[row[10]]))
        if row[8] is row[9]  # both `None`: no link led there
        else make((*row[:8], *_decode_locations(*row[8:10]), table[row[10]]))
        for row in rows
    ]


def _decode_locations(
    real: Row | None, real_file: Row | None
) -> tuple[FolderHandle | None, FolderHandle | None]:
    return (
        None if real is None else FolderHandle(*real),
        None if real_file is None else FolderHandle(*real_file),
    )


def encode_findings(findings: Iterable[Finding]) -> list[Row]:
    """Findings as rows that `marshal` can write."""
    return [(str(found.code), *found[1:]) for found in findings]


def decode_findings(rows: Iterable[Row]) -> tuple[Finding, ...]:
    """The findings that `encode_findings` wrote. Raises: KeyError, TypeError."""
    return tuple([Finding(_CODES[code], *rest) for code, *rest in rows])


def _encode_fields(front: Frontmatter) -> EncodedFields:
    """The fields without the texts that the row holds already; an ellipsis keeps their place."""
    fields: dict[str, Any] = dict(front.fields)
    for key, text in (("name", front.name), ("description", front.description)):
        if text and fields.get(key) == text:
            fields[key] = ...
    return marshal.dumps(fields)


def decode_frontmatter(
    fields: Frontmatter | EncodedFields, name: str, description: str
) -> Frontmatter:
    """The frontmatter of a candidate, decoded if need be."""
    if isinstance(fields, Frontmatter):
        return fields
    decoded: dict[str, Any] = marshal.loads(fields)  # noqa: S302 - our own bytes
    for key, text in (("name", name), ("description", description)):
        if decoded.get(key) is ...:
            decoded[key] = text
    return Frontmatter.from_fields(decoded)
