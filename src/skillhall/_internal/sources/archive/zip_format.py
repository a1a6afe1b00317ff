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

    from skillhall._internal.sources.archive.source import Intake

# The layouts and numbers are those of PKWARE's APPNOTE 6.3, sections 4.3 to 4.5.
_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = struct.Struct("<2H")
_WIDE_END = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_END_SIGN, _CENTRAL_SIGN, _LOCAL_SIGN = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_DESCRIPTOR_SIGN, _WIDE_END_SIGN, _LOCATOR_SIGN = b"PK\x07\x08", b"PK\x06\x06", b"PK\x06\x07"
_SIGNS = (_END_SIGN, _CENTRAL_SIGN, _LOCAL_SIGN, _WIDE_END_SIGN, _LOCATOR_SIGN)
_WIDE_END_REST = _WIDE_END.size - 12  # what the record says about its own size
_MAX_COMMENT = 0xFFFF
_WIDE = 0xFFFFFFFF  # the number stands in the zip64 extra field
_WIDE_COUNT = 0xFFFF  # the same for numbers of entries and parts
_DISK_SIZE = 4  # bytes of the number of a part in a zip64 extra field
# Of the end record: two numbers of parts, two of entries, the directory's size and offset.
_LARGEST = (_WIDE_COUNT, _WIDE_COUNT, _WIDE_COUNT, _WIDE_COUNT, _WIDE, _WIDE)
_PARTS = "it is one of several parts"
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


class _Entry(NamedTuple):
    """A file or folder, as the central directory tells it."""

    raw: bytes  # the name
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    attributes: int
    offset: int

    @property
    def mode(self) -> int:
        return self.attributes >> 16

    @property
    def is_folder(self) -> bool:
        return self.raw.endswith(b"/")


class _Directory(NamedTuple):
    """Where the central directory lies, and how many entries it lists."""

    start: int
    end: int
    entries: int


def is_zip(data: bytes) -> bool:
    """Whether some reader would take it for a zip file."""
    return data.startswith(b"PK") or _END_SIGN in data[-_END.size - _MAX_COMMENT :]


def read_zip(data: bytes, intake: Intake) -> None:
    """Hand every entry to `intake`. Raises: ArchiveRejected, TooLarge."""
    try:
        _read_zip(data, intake)
    except struct.error:
        intake.refuse("malformed", "a header ends too early")


def _read_zip(data: bytes, intake: Intake) -> None:
    directory = _find_directory(data, intake)
    intake.count(directory.entries)
    entries = list(_read_directory(data, directory, intake))
    for entry in entries:
        _judge(entry, intake)
    paths = [intake.enter(entry.raw, is_folder=entry.is_folder) for entry in entries]
    for path, entry in zip(paths, entries, strict=True):
        intake.weigh(path, entry.size)
    intake.foresee(sum(entry.size for entry in entries))
    bodies = _bodies(data, entries, directory, intake)
    for path, entry in zip(paths, entries, strict=True):
        content = _unpack(path, entry, bodies[entry.offset], intake)
        if not entry.is_folder:
            intake.keep(path, content, executable=bool(entry.mode & _EXECUTABLE))


def _find_directory(data: bytes, intake: Intake) -> _Directory:
    end = _find_end(data, intake)
    numbers = _END.unpack_from(data, end)[1:-1]
    locator = end - _LOCATOR.size
    if locator >= 0 and data.startswith(_LOCATOR_SIGN, locator):
        end, numbers = _read_wide_end(data, locator, numbers, intake)
    elif any(one == largest for one, largest in zip(numbers, _LARGEST, strict=True)):
        intake.refuse("malformed", "its zip64 end record is missing")
    disk, first_disk, here, entries, size, start = numbers
    if disk or first_disk or here != entries:
        intake.refuse("confusion", _PARTS)
    if start + size != end:
        intake.refuse("confusion", "its directory does not lie where its end record says")
    return _Directory(start, end, entries)


def _read_wide_end(
    data: bytes, locator: int, narrow: Sequence[int], intake: Intake
) -> tuple[int, tuple[int, ...]]:
    """Where the zip64 end record begins, and its numbers.

    Readers that do not know the record must see the same archive: whatever the plain end record
    says, it says the same.
    """
    _, disk, offset, disks = _LOCATOR.unpack_from(data, locator)
    at = locator - _WIDE_END.size
    if disk or disks > 1:
        intake.refuse("confusion", _PARTS)
    if at < 0 or offset != at:
        intake.refuse("confusion", "its zip64 end record does not lie where its locator says")
    sign, rest, _, _, *numbers = _WIDE_END.unpack_from(data, at)
    if sign != _WIDE_END_SIGN or rest != _WIDE_END_REST:
        intake.refuse("malformed", "its zip64 end record is damaged")
    for wide, number, largest in zip(numbers, narrow, _LARGEST, strict=True):
        if number not in (wide, largest):
            intake.refuse("confusion", "its two end records disagree")
    return at, tuple(numbers)


def _find_end(data: bytes, intake: Intake) -> int:
    ends = []
    last = data.rfind(_END_SIGN)
    found = data.find(_END_SIGN, max(0, len(data) - _END.size - _MAX_COMMENT))
    while found >= 0:
        if _length_at(data, found) == len(data) - found:
            ends.append(found)
        found = data.find(_END_SIGN, found + 1)
    if not ends and last >= 0 and _length_at(data, last) < len(data) - last:
        intake.refuse("confusion", "there is more after its end record")
    if not ends:
        intake.refuse("malformed", "it has no end record")
    comment = data[ends[0] + _END.size :]
    if any(sign in comment for sign in _SIGNS):
        intake.refuse("confusion", "its comment holds parts of another archive")
    return ends[0]


def _length_at(data: bytes, end: int) -> int:
    """How long the end record says that it is, with its comment; too long if it is cut off."""
    if len(data) - end < _END.size:
        return _END.size
    comment: int = _END.unpack_from(data, end)[-1]
    return _END.size + comment


def _read_directory(data: bytes, directory: _Directory, intake: Intake) -> Iterator[_Entry]:
    table = data[directory.start : directory.end]
    position = 0
    for _ in range(directory.entries):
        entry, position = _read_entry(table, position, intake)
        yield entry
    if position != len(table):
        intake.refuse("confusion", "its directory holds more than its end record says")


def _read_entry(table: bytes, position: int, intake: Intake) -> tuple[_Entry, int]:
    """The entry at `position`, and where the next one begins."""
    sign, _, _, flags, method, _, _, crc, *numbers = _CENTRAL.unpack_from(table, position)
    packed, size, name_size, extra_size, comment_size, disk, _, attributes, offset = numbers
    name_at = position + _CENTRAL.size
    extra_at = name_at + name_size
    after = extra_at + extra_size + comment_size
    if sign != _CENTRAL_SIGN or after > len(table):
        intake.refuse("malformed", "its directory is damaged")
    raw = table[name_at:extra_at]
    wide = _wide_numbers(table[extra_at : extra_at + extra_size], raw, intake)
    if disk == _WIDE_COUNT and len(wide) % 8 == _DISK_SIZE:  # the number of the part comes last
        disk = int.from_bytes(wide[-_DISK_SIZE:], "little")
    if disk:
        intake.refuse("confusion", _PARTS)
    # The order of the numbers in the extra field is the format's, not the header's.
    size, packed, offset = _widened((size, packed, offset), wide, intake)
    return _Entry(raw, flags, method, crc, packed, size, attributes, offset), after


def _wide_numbers(extra: bytes, raw: bytes, intake: Intake) -> bytes:
    """The zip64 extra field, if there is one, after a look at the other fields."""
    if len(extra) > _MAX_EXTRA:
        intake.refuse("malformed", f"an extra field has more than {_MAX_EXTRA} bytes")
    wide = b""
    while len(extra) >= _EXTRA.size:
        kind, size = _EXTRA.unpack_from(extra)
        value, extra = extra[_EXTRA.size : _EXTRA.size + size], extra[_EXTRA.size + size :]
        if len(value) < size:
            intake.refuse("malformed", "an extra field ends too early")
        if kind == _UNICODE_PATH and value[_UNICODE_PATH_HEAD:] != raw:
            intake.refuse("confusion", "an entry has two names")
        if kind == _AES_FIELD:
            intake.refuse("encrypted", "it is encrypted")
        if kind == _ZIP64:
            if wide:
                intake.refuse("confusion", "an entry has two sizes")
            wide = value
    if any(extra):  # writers that align entries fill up with zeros
        intake.refuse("malformed", "an extra field is damaged")
    return wide


def _widened(numbers: Sequence[int], wide: bytes, intake: Intake) -> Iterator[int]:
    position = 0
    for number in numbers:
        if number != _WIDE:
            yield number
            continue
        if len(wide) < position + 8:
            intake.refuse("malformed", "an entry has no size")
        yield int.from_bytes(wide[position : position + 8], "little")
        position += 8


def _judge(entry: _Entry, intake: Intake) -> None:
    if entry.flags & _ENCRYPTED or entry.method == _AES:
        intake.refuse("encrypted", "it is encrypted")
    if entry.flags & ~_KNOWN_FLAGS:
        intake.refuse("method", "it uses an extension of the zip format that is not read")
    if entry.method not in (_STORED, _DEFLATED):
        intake.refuse("method", f"compression method {entry.method} is not read")
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        intake.refuse("link", "it holds a link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        intake.refuse("special", "it holds something that is neither a file nor a folder")
    is_folder = kind == stat.S_IFDIR or (not kind and entry.attributes & _DOS_FOLDER)
    if (entry.is_folder and kind == stat.S_IFREG) or (is_folder and not entry.is_folder):
        intake.refuse("confusion", "an entry is a file by its name or its mode, but not by both")
    if entry.is_folder and entry.size:
        intake.refuse("confusion", "a folder has content of its own")


def _bodies(
    data: bytes, entries: Sequence[_Entry], directory: _Directory, intake: Intake
) -> dict[int, memoryview]:
    """The packed bytes of every entry by its offset; side by side, without a gap or an overlap."""
    ordered = sorted(entries, key=lambda entry: entry.offset)
    starts = [*(entry.offset for entry in ordered), directory.start]
    if starts[0] != 0:
        intake.refuse("confusion", "there is something before its first entry")
    bodies = {}
    view = memoryview(data)
    for entry, (start, after) in zip(ordered, pairwise(starts), strict=True):
        if after - start < _LOCAL.size:
            intake.refuse("confusion", "entries overlap")
        body = start + _check_local(data[start : min(after, start + _MAX_LOCAL)], entry, intake)
        end = body + entry.packed
        if end > after:
            intake.refuse("confusion", "entries overlap")
        if view[end:after] not in _gaps(entry):
            intake.refuse("confusion", "there is something between its entries")
        bodies[start] = view[body:end]
    return bodies


def _check_local(header: bytes, entry: _Entry, intake: Intake) -> int:
    """The size of the local header, which must say what the directory says."""
    sign, _, flags, method, _, _, crc, *numbers = _LOCAL.unpack_from(header)
    packed, size, name_size, extra_size = numbers
    extra_at: int = _LOCAL.size + name_size
    body_at: int = extra_at + extra_size
    raw = header[_LOCAL.size : extra_at]
    if sign != _LOCAL_SIGN or (raw, flags, method) != (entry.raw, entry.flags, entry.method):
        intake.refuse("confusion", "its directory and its entries disagree")
    if body_at > len(header):
        intake.refuse("confusion", "entries overlap")
    wide = _wide_numbers(header[extra_at:body_at], raw, intake)
    told = (crc, *_widened((size, packed), wide, intake))
    known = (entry.crc, entry.size, entry.packed)
    # A streamed entry may say nothing yet: its numbers follow it.
    unknown = (0, 0, 0) if entry.flags & _STREAMED else known
    if any(number not in pair for number, *pair in zip(told, known, unknown, strict=True)):
        intake.refuse("confusion", "its directory and its entries disagree")
    return body_at


def _gaps(entry: _Entry) -> Sequence[bytes]:
    """What may stand after an entry: nothing, or its data descriptor in one of four forms."""
    if not entry.flags & _STREAMED:
        return (b"",)
    numbers = (entry.crc, entry.packed, entry.size)
    forms = [struct.pack("<3L", *numbers), struct.pack("<LQQ", *numbers)]
    return [*forms, *(_DESCRIPTOR_SIGN + form for form in forms)]


def _unpack(path: str, entry: _Entry, body: memoryview, intake: Intake) -> bytes:
    if entry.method == _STORED:
        chunks = intake.plain(body)
    else:
        chunks = intake.inflated(body, _DEFLATE_WINDOW)
    content = intake.gather(path, chunks)
    if len(content) != entry.size or zlib.crc32(content) != entry.crc:
        intake.refuse("malformed", "a file is not what its size and checksum say")
    return content
