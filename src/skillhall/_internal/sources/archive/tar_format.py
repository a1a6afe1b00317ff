"""The tar format as a stream: POSIX headers with pax records, and GNU's long names.

Python's own reader is not used: it forgives what hostile files are made of, and crafted headers
make some versions of it loop for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.sources.archive.source import ArchiveExtraction

# The layout is that of POSIX.1-2017, pax, "ustar Interchange Format".
_BLOCK = 512
_ZEROS = bytes(_BLOCK)
_MAGIC_AT = 257
_USTAR = b"ustar"
_POSIX = b"ustar\x00"  # GNU writes a space for the zero, and times where the prefix would be
_FILES, _FOLDER, _LINKS, _DEVICES = b"0\x00", b"5", b"12K", b"346"
_EXECUTABLE = 0o100
_PAX, _GLOBAL, _LONG_NAME = b"x", b"g", b"L"
# GNU tar 1.35 and bsdtar 3.7 write less than 1 KiB for a file.
_MAX_EXTENSIONS = 8 * 1024 * 1024  # bytes of all headers that only describe other headers
_MAX_DIGITS = 20  # of a 64-bit number
# What would change which bytes a member has or how it is called. git writes only a comment.
_OVERRIDING_KEYS = frozenset({b"path", b"size", b"linkpath", b"hdrcharset"})
_SPARSE = b"GNU.sparse."
_BASE_256 = 0x80
_CHUNK_SIZE = 64 * 1024  # bytes of a file that is passed by


def is_tar(data: bytes) -> bool:
    """Whether it begins with the header of a tar file."""
    return data[_MAGIC_AT : _MAGIC_AT + len(_USTAR)] == _USTAR


def read_tar(chunks: Iterator[bytes], extraction: ArchiveExtraction) -> None:
    """Hand every member to `intake`. Raises: ArchiveRejected, TooLarge."""
    tar = _TarReader(_ChunkReader(chunks), extraction)
    while (header := tar.next_header()) is not None:
        if not tar.read_extension(header):
            tar.extract_member(header)


class TarMember(NamedTuple):
    """A file or link of a repository's archive; `content` can be read until the next one."""

    path: bytes  # as written, below the one folder at the top; checked by nobody
    size: int
    is_file: bool
    executable: bool
    content: Iterator[bytes]


def iterate_tar_members(
    chunks: Iterator[bytes], extraction: ArchiveExtraction
) -> Iterator[TarMember]:
    """The members of a tar file with one folder at its top, as hosts of repositories pack it.

    Nothing is kept and no name is believed: what is taken must be compared with what the
    repository's tree says. Raises: ArchiveRejected, TooLarge.
    """
    tar = _TarReader(_ChunkReader(chunks), extraction, skip_links=True)
    top: bytes | None = None
    while (header := tar.next_header()) is not None:
        if not tar.read_extension(header):
            name = tar.read_member_name(header)
            first, _, path = name.partition(b"/")
            top = first if top is None else top
            if first != top:
                extraction.reject("confusion", "it has more than one folder at its top")
            content = tar.iterate_content(header.size)
            if path and header.kind != _FOLDER:
                is_file = header.kind in _FILES
                yield TarMember(
                    path, header.size, is_file, bool(header.mode & _EXECUTABLE), content
                )
            for _ in content:  # what nobody wanted
                pass


class _Header(NamedTuple):
    kind: bytes
    raw_name: bytes  # the name
    size: int
    mode: int


@dataclass(slots=True)
class _ChunkReader:
    """Chunks, read by size."""

    chunks: Iterator[bytes]
    buffer: bytearray = field(default_factory=bytearray)

    def read(self, size: int) -> bytes:
        """That many bytes, or what is left."""
        while len(self.buffer) < size and (chunk := next(self.chunks, b"")):
            self.buffer += chunk
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken


@dataclass(slots=True)
class _TarReader:
    """A tar file being read, and what extensions said about the member to come."""

    stream: _ChunkReader
    extraction: ArchiveExtraction
    skip_links: bool = False  # links are passed by, not a reason to refuse
    pax_records: Mapping[bytes, bytes] | None = None
    long_name: bytes | None = None
    extension_bytes: int = 0  # bytes

    def next_header(self) -> _Header | None:
        """The next header; `None` at the end. Raises: ArchiveRejected, TooLarge."""
        block = self._read_exactly(_BLOCK)
        if block == _ZEROS:
            self._check_end()
            return None
        if self._parse_octal(block[148:156]) != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
            self.extraction.reject("malformed", "the checksum of a header is wrong")
        size = block[124:136]
        if size[0] & _BASE_256:  # only used for what octal digits cannot say: 8 GiB and more
            raise TooLarge(self.extraction.name, self.extraction.limits.file)
        return _Header(
            block[156:157],
            _read_name(block),
            self._parse_octal(size),
            self._parse_octal(block[100:108]),
        )

    def read_extension(self, header: _Header) -> bool:
        """Whether the header is an extension, read here, which describes a member.

        Raises: ArchiveRejected, TooLarge.
        """
        if header.kind == _PAX and self.pax_records is None:
            self.pax_records = self._read_pax_records(header)
        elif header.kind == _LONG_NAME and self.long_name is None:
            self.long_name = self._read_extension_data(header).rstrip(b"\x00")
        elif header.kind == _GLOBAL:
            self.extraction.count_entries()
            self._check_global(self._read_pax_records(header))
        elif header.kind in (_PAX, _LONG_NAME):
            self.extraction.reject("confusion", "a member is described twice")
        else:
            return False
        return True

    def read_member_name(self, header: _Header) -> bytes:
        """The name of a member of whatever kind, if its end is certain. Raises: ArchiveRejected."""
        self.extraction.count_entries()
        if header.kind not in _FILES and header.size:  # readers disagree about what follows
            self.extraction.reject("confusion", "a member that is no file has content")
        if header.kind not in _FILES + _FOLDER + _LINKS + _DEVICES:
            self.extraction.reject("special", "it holds something of an unknown kind")
        return self._resolve_name(header)

    def extract_member(self, header: _Header) -> None:
        """Hand the member after its header to the intake. Raises: ArchiveRejected, TooLarge."""
        self.extraction.count_entries()
        if header.kind in _LINKS:
            self.extraction.reject("link", "it holds a link")
        if header.kind not in _FILES + _FOLDER:
            self.extraction.reject(
                "special", "it holds something that is neither a file nor a folder"
            )
        raw = self._resolve_name(header)
        if header.kind == _FOLDER:
            if header.size:
                self.extraction.reject("confusion", "a folder has content of its own")
            self.extraction.claim_path(raw, is_folder=True)
            return
        if raw.endswith(b"/"):  # early tars marked folders so
            self.extraction.reject(
                "confusion", "an entry is a folder by its name, but not by its kind"
            )
        path = self.extraction.claim_path(raw, is_folder=False)
        self.extraction.check_file_size(path, header.size)
        self.extraction.add_file(
            path, self._read_content(header.size), executable=bool(header.mode & _EXECUTABLE)
        )

    def _resolve_name(self, header: _Header) -> bytes:
        records, long_name = self.pax_records or {}, self.long_name
        self.pax_records = self.long_name = None
        if b"linkpath" in records and not self.skip_links:
            self.extraction.reject("link", "it holds a link")
        if any(key.startswith(_SPARSE) for key in records):
            self.extraction.reject("special", "it holds a file with holes")
        # Readers disagree about which size counts; an honest writer needs only one for small files.
        size = records.get(b"size", b"%d" % header.size)
        if b"hdrcharset" in records or size != b"%d" % header.size:
            self.extraction.reject("confusion", "the records of a member contradict its header")
        names = [name for name in (records.get(b"path"), long_name) if name is not None]
        if len(names) > 1:
            self.extraction.reject("confusion", "a member has two names")
        return names[0] if names else header.raw_name

    def _check_global(self, records: Mapping[bytes, bytes]) -> None:
        if any(key in _OVERRIDING_KEYS or key.startswith(_SPARSE) for key in records):
            self.extraction.reject("confusion", "one record speaks for all members")

    def _read_pax_records(self, header: _Header) -> Mapping[bytes, bytes]:
        data = self._read_extension_data(header)
        records: dict[bytes, bytes] = {}
        position = 0
        while position < len(data):
            length = self._parse_decimal(data[position : position + _MAX_DIGITS].partition(b" ")[0])
            record = data[position : position + length]
            key, equals, value = record.partition(b" ")[2][:-1].partition(b"=")
            if len(record) < length or not record.endswith(b"\n") or not equals:
                self.extraction.reject("malformed", "the records of a member are damaged")
            if key in records:
                self.extraction.reject("confusion", "a member is described twice")
            records[key] = value
            position += length
        return records

    def _read_extension_data(self, header: _Header) -> bytes:
        self.extension_bytes += header.size
        if self.extension_bytes > _MAX_EXTENSIONS:
            raise TooLarge(self.extraction.name, _MAX_EXTENSIONS, "bytes of descriptions")
        return self._read_content(header.size)

    def _read_content(self, size: int) -> bytes:
        return self._read_exactly(size + -size % _BLOCK)[:size]

    def iterate_content(self, size: int) -> Iterator[bytes]:
        """The bytes of a member, a part at a time. Raises: ArchiveRejected, TooLarge."""
        left = size
        while left > 0:
            part = min(left, _CHUNK_SIZE)
            yield self._read_exactly(part)
            left -= part
        self._read_exactly(-size % _BLOCK)

    def _read_exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            self.extraction.reject("malformed", "it ends too early")
        return data

    def _check_end(self) -> None:
        if self.pax_records is not None or self.long_name is not None:
            self.extraction.reject("malformed", "the last member is missing")
        rest = self._read_exactly(_BLOCK)
        while rest:
            if rest.strip(b"\x00"):
                self.extraction.reject("confusion", "there is more after its end")
            rest = self.stream.read(128 * _BLOCK)

    def _parse_octal(self, digits: bytes) -> int:
        digits = digits.strip(b" \x00")
        if digits.strip(b"01234567"):
            self.extraction.reject("malformed", "a number in a header is damaged")
        return int(digits or b"0", 8)

    def _parse_decimal(self, digits: bytes) -> int:
        if not digits.isdigit() or int(digits) == 0:
            self.extraction.reject("malformed", "a number in a header is damaged")
        return int(digits)


def _read_name(block: bytes) -> bytes:
    name = block[:100].partition(b"\x00")[0]
    prefix = block[345:500].partition(b"\x00")[0]
    if block[_MAGIC_AT:].startswith(_POSIX) and prefix:
        return prefix + b"/" + name
    return name
