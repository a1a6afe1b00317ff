"""The zip format, read so that no two readers can see different files in it.

The central directory and the local headers must say the same, and the entries must lie side by side
from the first byte of the file to the directory: nothing is left for anybody to hide in.
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
_ZIP64_END_REMAINDER = _ZIP64_END.size - 12  # what the record says about its own size
_MAX_COMMENT = 0xFFFF
_ZIP64_MARKER = 0xFFFFFFFF  # the number stands in the zip64 extra field
_ZIP64_COUNT_MARKER = 0xFFFF  # the same for numbers of entries and parts
_DISK_SIZE = 4  # bytes of the number of a part in a zip64 extra field
# Of the end record: two numbers of parts, two of entries, the directory's size and offset.
_ZIP64_MARKERS = (
    _ZIP64_COUNT_MARKER,
    _ZIP64_COUNT_MARKER,
    _ZIP64_COUNT_MARKER,
    _ZIP64_COUNT_MARKER,
    _ZIP64_MARKER,
    _ZIP64_MARKER,
)
_MULTI_PART_ARCHIVE = "it is one of several parts"
_STORED, _DEFLATED, _AES = 0, 8, 99
_DEFLATE_WINDOW = -15  # zlib's word for a stream without a header
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # classic, strong, and hidden headers
_STREAMED = 1 << 3  # a data descriptor follows
_KNOWN_FLAGS = 0b110 | _STREAMED | 1 << 11  # how hard it was deflated, UTF-8
_ZIP64, _UNICODE_PATH, _AES_FIELD = 0x0001, 0x7075, 0x9901
_UNICODE_PATH_HEAD = 5  # bytes before the name: a version and a checksum
_MAX_EXTRA = 1024  # bytes; times, owners and sizes take less than 100
_MAX_LOCAL = _LOCAL.size + 2 * 0xFFFF  # bytes of a header with its name and extra fields
_DOS_FOLDER = 0x10
_EXECUTABLE = 0o100


class _ZipEntry(NamedTuple):
    """A file or folder, as the central directory tells it."""

    raw_name: bytes  # the name
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
    """Where the central directory lies, and how many entries it lists."""

    start: int
    end: int
    entry_count: int


def is_zip(data: bytes) -> bool:
    """Whether some reader would take it for a zip file."""
    return data.startswith(b"PK") or _END_SIGNATURE in data[-_END.size - _MAX_COMMENT :]


def read_zip(data: bytes, extraction: ArchiveExtraction) -> None:
    """Hand every entry to `intake`. Raises: ArchiveRejected, TooLarge."""
    try:
        _read_zip(data, extraction)
    except struct.error:
        extraction.reject("malformed", "a header ends too early")


def _read_zip(data: bytes, extraction: ArchiveExtraction) -> None:
    directory = _find_directory(data, extraction)
    extraction.count_entries(directory.entry_count)
    entries = list(_read_directory(data, directory, extraction))
    for entry in entries:
        _check_entry(entry, extraction)
    paths = [extraction.claim_path(entry.raw_name, is_folder=entry.is_folder) for entry in entries]
    for path, entry in zip(paths, entries, strict=True):
        extraction.check_file_size(path, entry.size)
    extraction.check_total_size(sum(entry.size for entry in entries))
    bodies = _locate_bodies(data, entries, directory, extraction)
    for path, entry in zip(paths, entries, strict=True):
        content = _unpack(path, entry, bodies[entry.offset], extraction)
        if not entry.is_folder:
            extraction.add_file(path, content, executable=bool(entry.mode & _EXECUTABLE))


def _find_directory(data: bytes, extraction: ArchiveExtraction) -> _CentralDirectory:
    end = _find_end(data, extraction)
    numbers = _END.unpack_from(data, end)[1:-1]
    locator = end - _LOCATOR.size
    if locator >= 0 and data.startswith(_LOCATOR_SIGNATURE, locator):
        end, numbers = _read_zip64_end(data, locator, numbers, extraction)
    elif any(one == largest for one, largest in zip(numbers, _ZIP64_MARKERS, strict=True)):
        extraction.reject("malformed", "its zip64 end record is missing")
    disk, first_disk, here, entries, size, start = numbers
    if disk or first_disk or here != entries:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    if start + size != end:
        extraction.reject("confusion", "its directory does not lie where its end record says")
    return _CentralDirectory(start, end, entries)


def _read_zip64_end(
    data: bytes, locator: int, end_numbers: Sequence[int], extraction: ArchiveExtraction
) -> tuple[int, tuple[int, ...]]:
    """Where the zip64 end record begins, and its numbers.

    Readers that do not know the record must see the same archive: whatever the plain end record
    says, it says the same.
    """
    _, disk, offset, disks = _LOCATOR.unpack_from(data, locator)
    at = locator - _ZIP64_END.size
    if disk or disks > 1:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    if at < 0 or offset != at:
        extraction.reject("confusion", "its zip64 end record does not lie where its locator says")
    sign, rest, _, _, *numbers = _ZIP64_END.unpack_from(data, at)
    if sign != _ZIP64_END_SIGNATURE or rest != _ZIP64_END_REMAINDER:
        extraction.reject("malformed", "its zip64 end record is damaged")
    for wide, number, largest in zip(numbers, end_numbers, _ZIP64_MARKERS, strict=True):
        if number not in (wide, largest):
            extraction.reject("confusion", "its two end records disagree")
    return at, tuple(numbers)


def _find_end(data: bytes, extraction: ArchiveExtraction) -> int:
    ends = []
    last = data.rfind(_END_SIGNATURE)
    found = data.find(_END_SIGNATURE, max(0, len(data) - _END.size - _MAX_COMMENT))
    while found >= 0:
        if _end_record_length(data, found) == len(data) - found:
            ends.append(found)
        found = data.find(_END_SIGNATURE, found + 1)
    if not ends and last >= 0 and _end_record_length(data, last) < len(data) - last:
        extraction.reject("confusion", "there is more after its end record")
    if not ends:
        extraction.reject("malformed", "it has no end record")
    comment = data[ends[0] + _END.size :]
    if any(sign in comment for sign in _SIGNATURES):
        extraction.reject("confusion", "its comment holds parts of another archive")
    return ends[0]


def _end_record_length(data: bytes, end: int) -> int:
    """How long the end record says that it is, with its comment; too long if it is cut off."""
    if len(data) - end < _END.size:
        return _END.size
    comment: int = _END.unpack_from(data, end)[-1]
    return _END.size + comment


def _read_directory(
    data: bytes, directory: _CentralDirectory, extraction: ArchiveExtraction
) -> Iterator[_ZipEntry]:
    table = data[directory.start : directory.end]
    position = 0
    for _ in range(directory.entry_count):
        entry, position = _read_entry(table, position, extraction)
        yield entry
    if position != len(table):
        extraction.reject("confusion", "its directory holds more than its end record says")


def _read_entry(
    table: bytes, position: int, extraction: ArchiveExtraction
) -> tuple[_ZipEntry, int]:
    """The entry at `position`, and where the next one begins."""
    sign, _, _, flags, method, _, _, crc, *numbers = _CENTRAL.unpack_from(table, position)
    packed, size, name_size, extra_size, comment_size, disk, _, attributes, offset = numbers
    name_at = position + _CENTRAL.size
    extra_at = name_at + name_size
    after = extra_at + extra_size + comment_size
    if sign != _CENTRAL_SIGNATURE or after > len(table):
        extraction.reject("malformed", "its directory is damaged")
    raw = table[name_at:extra_at]
    wide = _read_zip64_field(table[extra_at : extra_at + extra_size], raw, extraction)
    if (
        disk == _ZIP64_COUNT_MARKER and len(wide) % 8 == _DISK_SIZE
    ):  # the number of the part comes last
        disk = int.from_bytes(wide[-_DISK_SIZE:], "little")
    if disk:
        extraction.reject("confusion", _MULTI_PART_ARCHIVE)
    # The order of the numbers in the extra field is the format's, not the header's.
    size, packed, offset = _apply_zip64((size, packed, offset), wide, extraction)
    return _ZipEntry(raw, flags, method, crc, packed, size, attributes, offset), after


def _read_zip64_field(extra: bytes, raw_name: bytes, extraction: ArchiveExtraction) -> bytes:
    """The zip64 extra field, if there is one, after a look at the other fields."""
    if len(extra) > _MAX_EXTRA:
        extraction.reject("malformed", f"an extra field has more than {_MAX_EXTRA} bytes")
    wide = b""
    while len(extra) >= _EXTRA.size:
        kind, size = _EXTRA.unpack_from(extra)
        value, extra = extra[_EXTRA.size : _EXTRA.size + size], extra[_EXTRA.size + size :]
        if len(value) < size:
            extraction.reject("malformed", "an extra field ends too early")
        if kind == _UNICODE_PATH and value[_UNICODE_PATH_HEAD:] != raw_name:
            extraction.reject("confusion", "an entry has two names")
        if kind == _AES_FIELD:
            extraction.reject("encrypted", "it is encrypted")
        if kind == _ZIP64:
            if wide:
                extraction.reject("confusion", "an entry has two sizes")
            wide = value
    if any(extra):  # writers that align entries fill up with zeros
        extraction.reject("malformed", "an extra field is damaged")
    return wide


def _apply_zip64(
    numbers: Sequence[int], zip64_field: bytes, extraction: ArchiveExtraction
) -> Iterator[int]:
    position = 0
    for number in numbers:
        if number != _ZIP64_MARKER:
            yield number
            continue
        if len(zip64_field) < position + 8:
            extraction.reject("malformed", "an entry has no size")
        yield int.from_bytes(zip64_field[position : position + 8], "little")
        position += 8


def _check_entry(entry: _ZipEntry, extraction: ArchiveExtraction) -> None:
    if entry.flags & _ENCRYPTED or entry.method == _AES:
        extraction.reject("encrypted", "it is encrypted")
    if entry.flags & ~_KNOWN_FLAGS:
        extraction.reject("method", "it uses an extension of the zip format that is not read")
    if entry.method not in (_STORED, _DEFLATED):
        extraction.reject("method", f"compression method {entry.method} is not read")
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        extraction.reject("link", "it holds a link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        extraction.reject("special", "it holds something that is neither a file nor a folder")
    is_folder = kind == stat.S_IFDIR or (not kind and entry.attributes & _DOS_FOLDER)
    if (entry.is_folder and kind == stat.S_IFREG) or (is_folder and not entry.is_folder):
        extraction.reject(
            "confusion", "an entry is a file by its name or its mode, but not by both"
        )
    if entry.is_folder and entry.size:
        extraction.reject("confusion", "a folder has content of its own")


def _locate_bodies(
    data: bytes,
    entries: Sequence[_ZipEntry],
    directory: _CentralDirectory,
    extraction: ArchiveExtraction,
) -> dict[int, memoryview]:
    """The packed bytes of every entry by its offset; side by side, without a gap or an overlap."""
    ordered = sorted(entries, key=lambda entry: entry.offset)
    starts = [*(entry.offset for entry in ordered), directory.start]
    if starts[0] != 0:
        extraction.reject("confusion", "there is something before its first entry")
    bodies = {}
    view = memoryview(data)
    for entry, (start, after) in zip(ordered, pairwise(starts), strict=True):
        if after - start < _LOCAL.size:
            extraction.reject("confusion", "entries overlap")
        body = start + _check_local_header(
            data[start : min(after, start + _MAX_LOCAL)], entry, extraction
        )
        end = body + entry.packed_size
        if end > after:
            extraction.reject("confusion", "entries overlap")
        if view[end:after] not in _allowed_gaps(entry):
            extraction.reject("confusion", "there is something between its entries")
        bodies[start] = view[body:end]
    return bodies


def _check_local_header(header: bytes, entry: _ZipEntry, extraction: ArchiveExtraction) -> int:
    """The size of the local header, which must say what the directory says."""
    sign, _, flags, method, _, _, crc, *numbers = _LOCAL.unpack_from(header)
    packed, size, name_size, extra_size = numbers
    extra_at: int = _LOCAL.size + name_size
    body_at: int = extra_at + extra_size
    raw = header[_LOCAL.size : extra_at]
    if sign != _LOCAL_SIGNATURE or (raw, flags, method) != (
        entry.raw_name,
        entry.flags,
        entry.method,
    ):
        extraction.reject("confusion", "its directory and its entries disagree")
    if body_at > len(header):
        extraction.reject("confusion", "entries overlap")
    wide = _read_zip64_field(header[extra_at:body_at], raw, extraction)
    told = (crc, *_apply_zip64((size, packed), wide, extraction))
    known = (entry.crc, entry.size, entry.packed_size)
    # A streamed entry may say nothing yet: its numbers follow it.
    unknown = (0, 0, 0) if entry.flags & _STREAMED else known
    if any(number not in pair for number, *pair in zip(told, known, unknown, strict=True)):
        extraction.reject("confusion", "its directory and its entries disagree")
    return body_at


def _allowed_gaps(entry: _ZipEntry) -> Sequence[bytes]:
    """What may stand after an entry: nothing, or its data descriptor in one of four forms."""
    if not entry.flags & _STREAMED:
        return (b"",)
    numbers = (entry.crc, entry.packed_size, entry.size)
    forms = [struct.pack("<3L", *numbers), struct.pack("<LQQ", *numbers)]
    return [*forms, *(_DESCRIPTOR_SIGNATURE + form for form in forms)]


def _unpack(path: str, entry: _ZipEntry, body: memoryview, extraction: ArchiveExtraction) -> bytes:
    if entry.method == _STORED:
        chunks = extraction.read_stored(body)
    else:
        chunks = extraction.inflate(body, _DEFLATE_WINDOW)
    content = extraction.read_content(path, chunks)
    if len(content) != entry.size or zlib.crc32(content) != entry.crc:
        extraction.reject("malformed", "a file is not what its size and checksum say")
    return content
