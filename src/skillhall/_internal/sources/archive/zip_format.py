"""Strict reader of the zip format: rejects ambiguous files.

The central directory and the local headers must agree. The entries must be adjacent, from the first
byte of the file to the directory, so that no data can be hidden between them.
"""

from __future__ import annotations

import stat
import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.sources.archive.source import ArchiveExtraction

# The layouts and numbers are those of PKWARE's APPNOTE 6.3, sections 4.3 to 4.5.
_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = struct.Struct("<2H")
_ZIP64_END = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_END_SIGNATURE, _CENTRAL_SIGNATURE, _LOCAL_SIGNATURE = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_DESCRIPTOR_SIGNATURE, _ZIP64_END_SIGNATURE, _LOCATOR_SIGNATURE = (
    b"PK\x07\x08",
    b"PK\x06\x06",
    b"PK\x06\x07",
)
_SIGNATURES = (
    _END_SIGNATURE,
    _CENTRAL_SIGNATURE,
    _LOCAL_SIGNATURE,
    _ZIP64_END_SIGNATURE,
    _LOCATOR_SIGNATURE,
)
_ZIP64_END_REMAINDER = _ZIP64_END.size - 12  # the record's size field excludes its first 12 bytes
_MAX_COMMENT = 0xFFFF
_ZIP64_MARKER = 0xFFFFFFFF  # the number is in the zip64 extra field
_ZIP64_COUNT_MARKER = 0xFFFF  # the same for counts of entries and disks
_DISK_SIZE = 4  # bytes of the disk number in a zip64 extra field
# Of the end record: two disk numbers, two entry counts, the directory's size and offset.
_ZIP64_MARKERS = (*[_ZIP64_COUNT_MARKER] * 4, _ZIP64_MARKER, _ZIP64_MARKER)
_MULTI_PART_ARCHIVE = "it is part of a multi-part archive"
_STORED, _DEFLATED, _AES = 0, 8, 99
_DEFLATE_WINDOW = -15  # zlib's value for a stream without a header
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # classic, strong, and hidden headers
_STREAMED = 1 << 3  # a data descriptor follows
_KNOWN_FLAGS = 0b110 | _STREAMED | 1 << 11  # compression level, data descriptor, UTF-8
_ZIP64, _UNICODE_PATH, _AES_FIELD = 0x0001, 0x7075, 0x9901
_UNICODE_PATH_HEAD = 5  # bytes before the name: a version and a checksum
_MAX_EXTRA = 1024  # bytes; times, owners and sizes need less than 100
_MAX_LOCAL = _LOCAL.size + 2 * 0xFFFF  # bytes of a header with its name and extra fields
_DOS_FOLDER = 0x10
_EXECUTABLE = 0o100


class _ZipEntry(NamedTuple):
    """File or folder in the central directory."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    attributes: int
    offset: int

    @property
    def mode(self) -> int:
        return self.attributes >> 16

    @property
    def is_folder(self) -> bool:
        return self.raw_name.endswith(b"/")


class _CentralDirectory(NamedTuple):
    """Position of the central directory, and its number of entries."""

    start: int
    end: int
    entry_count: int


def is_zip(data: bytes) -> bool:
    """Whether any reader would recognize the data as a zip file."""
    return data.startswith(b"PK") or _END_SIGNATURE in data[-_END.size - _MAX_COMMENT :]


def read_zip(data: bytes, extraction: ArchiveExtraction) -> None:
    """Pass every entry to `extraction`. Raises: ArchiveRejected, TooLarge."""
    try:
        _read_zip(data, extraction)
    except struct.error:
        extraction.reject("malformed", "a header is truncated")


def _read_zip(data: bytes, extraction: ArchiveExtraction) -> None:
    directory = _find_directory(data, extraction)
    extraction.count_entries(directory.entry_count)
    table, position = data[directory.start : directory.end], 0
    entries = []
    for _ in range(directory.entry_count):
        entry, position = _read_entry(table, position, extraction)
        entries.append(entry)
    if position != len(table):
        extraction.reject("confusion", "its directory has data after the last entry")
    for entry in entries:
        _check_entry(entry, extraction)
    paths = [extraction.claim_path(entry.raw_name, is_folder=entry.is_folder) for entry in entries]
    for path, entry in zip(paths, entries, strict=True):
        extraction.check_file_size(path, entry.size)
    extraction.check_total_size(sum(entry.size for entry in entries))
    bodies = _locate_bodies(data, entries, directory, extraction)
    for path, entry in zip(paths, entries, strict=True):
        body = bodies[entry.offset]
        if entry.method == _STORED:
            chunks = extraction.read_stored(body)
        else:
            chunks = extraction.inflate(body, _DEFLATE_WINDOW)
        content = extraction.read_content(path, chunks)
        if len(content) != entry.size or zlib.crc32(content) != entry.crc:
            extraction.reject("malformed", "a file does not match its size and checksum")
        if not entry.is_folder:
            extraction.add_file(path, content, executable=bool(entry.mode & _EXECUTABLE))


def _find_directory(data: bytes, extraction: ArchiveExtraction) -> _CentralDirectory:
    end = _find_end(data, extraction)
    numbers = _END.unpack_from(data, end)[1:-1]
    locator = end - _LOCATOR.size
    if locator >= 0 and data.startswith(_LOCATOR_SIGNATURE, locator):
        end, numbers = _read_zip64_end(data, locator, numbers, extraction)
    elif any(number == mark for number, mark in zip(numbers, _ZIP64_MARKERS, strict=True)):
        extraction.reject("malformed", "its zip64 end record is missing")
    disk, first_disk, here, entries, size, start = numbers
    if disk or first_disk or here != entries:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    if start + size != end:
        extraction.reject("confusion", "its directory is not where its end record says")
    return _CentralDirectory(start, end, entries)


def _read_zip64_end(
    data: bytes, locator: int, end_numbers: Sequence[int], extraction: ArchiveExtraction
) -> tuple[int, tuple[int, ...]]:
    """Return the position of the zip64 end record, and its numbers.

    The plain end record must have the same numbers, because some readers ignore zip64.
    """
    _, disk, offset, disks = _LOCATOR.unpack_from(data, locator)
    start = locator - _ZIP64_END.size
    if disk or disks > 1:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    if start < 0 or offset != start:
        extraction.reject("confusion", "its zip64 end record is not where its locator says")
    signature, rest, _, _, *numbers = _ZIP64_END.unpack_from(data, start)
    if signature != _ZIP64_END_SIGNATURE or rest != _ZIP64_END_REMAINDER:
        extraction.reject("malformed", "its zip64 end record is malformed")
    for wide, number, marker in zip(numbers, end_numbers, _ZIP64_MARKERS, strict=True):
        if number not in (wide, marker):
            extraction.reject("confusion", "its two end records disagree")
    return start, tuple(numbers)


def _find_end(data: bytes, extraction: ArchiveExtraction) -> int:
    ends = []
    last = data.rfind(_END_SIGNATURE)
    position = data.find(_END_SIGNATURE, max(0, len(data) - _END.size - _MAX_COMMENT))
    while position >= 0:
        if _end_record_length(data, position) == len(data) - position:
            ends.append(position)
        position = data.find(_END_SIGNATURE, position + 1)
    if not ends and last >= 0 and _end_record_length(data, last) < len(data) - last:
        extraction.reject("confusion", "it has data after its end record")
    if not ends:
        extraction.reject("malformed", "it has no end record")
    comment = data[ends[0] + _END.size :]
    if any(signature in comment for signature in _SIGNATURES):
        extraction.reject("confusion", "its comment contains parts of another archive")
    return ends[0]


def _end_record_length(data: bytes, end: int) -> int:
    """Return the length of the end record, with its comment unless it is truncated."""
    if len(data) - end < _END.size:
        return _END.size
    comment: int = _END.unpack_from(data, end)[-1]
    return _END.size + comment


def _read_entry(
    table: bytes, position: int, extraction: ArchiveExtraction
) -> tuple[_ZipEntry, int]:
    """Return the entry at `position`, and the position of the next one."""
    signature, _, _, flags, method, _, _, crc, *numbers = _CENTRAL.unpack_from(table, position)
    packed, size, name_size, extra_size, comment_size, disk, _, attributes, offset = numbers
    name_start = position + _CENTRAL.size
    extra_start = name_start + name_size
    next_position = extra_start + extra_size + comment_size
    if signature != _CENTRAL_SIGNATURE or next_position > len(table):
        extraction.reject("malformed", "its directory is malformed")
    raw = table[name_start:extra_start]
    zip64_field = _read_zip64_field(table[extra_start : extra_start + extra_size], raw, extraction)
    if (
        disk == _ZIP64_COUNT_MARKER and len(zip64_field) % 8 == _DISK_SIZE
    ):  # the number of the part comes last
        disk = int.from_bytes(zip64_field[-_DISK_SIZE:], "little")
    if disk:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    # The zip64 field has these numbers in a different order than the header.
    size, packed, offset = _apply_zip64((size, packed, offset), zip64_field, extraction)
    return _ZipEntry(raw, flags, method, crc, packed, size, attributes, offset), next_position


def _read_zip64_field(extra: bytes, raw_name: bytes, extraction: ArchiveExtraction) -> bytes:
    """Check all extra fields and return the zip64 field, if there is one."""
    if len(extra) > _MAX_EXTRA:
        extraction.reject("malformed", f"an entry has more than {_MAX_EXTRA} bytes of extra fields")
    zip64_field = b""
    while len(extra) >= _EXTRA.size:
        kind, size = _EXTRA.unpack_from(extra)
        value, extra = extra[_EXTRA.size : _EXTRA.size + size], extra[_EXTRA.size + size :]
        if len(value) < size:
            extraction.reject("malformed", "an extra field is truncated")
        if kind == _UNICODE_PATH and value[_UNICODE_PATH_HEAD:] != raw_name:
            extraction.reject("confusion", "an entry has two names")
        if kind == _AES_FIELD:
            extraction.reject("encrypted", "it is encrypted")
        if kind == _ZIP64:
            if zip64_field:
                extraction.reject("confusion", "an entry has two sizes")
            zip64_field = value
    if any(extra):  # zeros are padding of writers that align entries
        extraction.reject("malformed", "an extra field is malformed")
    return zip64_field


def _apply_zip64(
    numbers: Sequence[int], zip64_field: bytes, extraction: ArchiveExtraction
) -> Iterator[int]:
    position = 0
    for number in numbers:
        if number != _ZIP64_MARKER:
            yield number
            continue
        if len(zip64_field) < position + 8:
            extraction.reject("malformed", "an entry lacks a zip64 size or offset")
        yield int.from_bytes(zip64_field[position : position + 8], "little")
        position += 8


def _check_entry(entry: _ZipEntry, extraction: ArchiveExtraction) -> None:
    if entry.flags & _ENCRYPTED or entry.method == _AES:
        extraction.reject("encrypted", "it is encrypted")
    if entry.flags & ~_KNOWN_FLAGS:
        extraction.reject("method", "it uses an unsupported extension of the zip format")
    if entry.method not in (_STORED, _DEFLATED):
        extraction.reject("method", f"compression method {entry.method} is not supported")
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        extraction.reject("link", "it contains a link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        extraction.reject("special", "an entry is neither a file nor a folder")
    is_folder = kind == stat.S_IFDIR or (not kind and entry.attributes & _DOS_FOLDER)
    if (entry.is_folder and kind == stat.S_IFREG) or (is_folder and not entry.is_folder):
        extraction.reject(
            "confusion", "an entry is a folder by its name or by its mode, but not by both"
        )
    if entry.is_folder and entry.size:
        extraction.reject("confusion", "a folder has content of its own")


def _locate_bodies(
    data: bytes,
    entries: Sequence[_ZipEntry],
    directory: _CentralDirectory,
    extraction: ArchiveExtraction,
) -> dict[int, memoryview]:
    """Return the packed bytes of every entry by offset; rejects gaps and overlaps."""
    ordered = sorted(entries, key=lambda entry: entry.offset)
    starts = [*(entry.offset for entry in ordered), directory.start]
    if starts[0] != 0:
        extraction.reject("confusion", "it has data before its first entry")
    bodies = {}
    view = memoryview(data)
    for entry, (start, after) in zip(ordered, pairwise(starts), strict=True):
        if after - start < _LOCAL.size:
            extraction.reject("confusion", "entries overlap")
        header = data[start : min(after, start + _MAX_LOCAL)]
        body = start + _check_local_header(header, entry, extraction)
        end = body + entry.packed_size
        if end > after:
            extraction.reject("confusion", "entries overlap")
        if view[end:after] not in _allowed_gaps(entry):
            extraction.reject("confusion", "it has data between its entries")
        bodies[start] = view[body:end]
    return bodies


def _check_local_header(header: bytes, entry: _ZipEntry, extraction: ArchiveExtraction) -> int:
    """Check the local header against the directory; return its size."""
    signature, _, flags, method, _, _, crc, *numbers = _LOCAL.unpack_from(header)
    packed, size, name_size, extra_size = numbers
    extra_start: int = _LOCAL.size + name_size
    body_start: int = extra_start + extra_size
    raw = header[_LOCAL.size : extra_start]
    is_same = (raw, flags, method) == (entry.raw_name, entry.flags, entry.method)
    if signature != _LOCAL_SIGNATURE or not is_same:
        extraction.reject("confusion", "its directory and its entries disagree")
    if body_start > len(header):
        extraction.reject("confusion", "entries overlap")
    zip64_field = _read_zip64_field(header[extra_start:body_start], raw, extraction)
    actual = (crc, *_apply_zip64((size, packed), zip64_field, extraction))
    expected = (entry.crc, entry.size, entry.packed_size)
    # A streamed entry may have zeros here; its numbers are in the data descriptor.
    streamed = (0, 0, 0) if entry.flags & _STREAMED else expected
    if any(number not in pair for number, *pair in zip(actual, expected, streamed, strict=True)):
        extraction.reject("confusion", "its directory and its entries disagree")
    return body_start


def _allowed_gaps(entry: _ZipEntry) -> Sequence[bytes]:
    """Return the bytes that may follow an entry: none, or forms of a data descriptor."""
    if not entry.flags & _STREAMED:
        return (b"",)
    numbers = (entry.crc, entry.packed_size, entry.size)
    forms = [struct.pack("<3L", *numbers), struct.pack("<LQQ", *numbers)]
    return [*forms, *(_DESCRIPTOR_SIGNATURE + form for form in forms)]
