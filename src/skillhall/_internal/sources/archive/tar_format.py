"""Streaming reader of the tar format: POSIX headers, pax records, GNU long names.

Python's `tarfile` is not used: it tolerates malformed input, and crafted headers make some versions
of it loop forever.
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
# GNU tar 1.35 and bsdtar 3.7 write less than 1 KiB of extension headers for each file.
_MAX_EXTENSIONS = 8 * 1024 * 1024  # bytes of all extension headers
_MAX_DIGITS = 20  # of a 64-bit number
# Global records that would change the content or name of members. git writes only a comment.
_OVERRIDING_KEYS = frozenset({b"path", b"size", b"linkpath", b"hdrcharset"})
_SPARSE = b"GNU.sparse."
_BASE_256 = 0x80
_CHUNK_SIZE = 64 * 1024  # bytes


def is_tar(data: bytes) -> bool:
    """Whether the data starts with the header of a tar file."""
    return data[_MAGIC_AT : _MAGIC_AT + len(_USTAR)] == _USTAR


def read_tar(chunks: Iterator[bytes], extraction: ArchiveExtraction) -> None:
    """Pass every member to `extraction`. Raises: ArchiveRejected, TooLarge."""
    tar = _TarReader(_ChunkReader(chunks), extraction)
    while (header := tar.next_header()) is not None:
        if not tar.read_extension(header):
            tar.extract_member(header)


class TarMember(NamedTuple):
    """File or link in a repository's archive; read `content` before the next member."""

    path: bytes  # below the top folder; not checked
    size: int
    is_file: bool
    executable: bool
    content: Iterator[bytes]


def iterate_tar_members(
    chunks: Iterator[bytes], extraction: ArchiveExtraction
) -> Iterator[TarMember]:
    """Yield the members of a repository's archive, which has one top folder.

    Names are not checked: callers must compare members with the repository's tree.
    Raises: ArchiveRejected, TooLarge.
    """
    tar = _TarReader(_ChunkReader(chunks), extraction, skip_links=True)
    top: bytes | None = None
    while (header := tar.next_header()) is not None:
        if not tar.read_extension(header):
            name = tar.read_member_name(header)
            first, _, path = name.partition(b"/")
            top = first if top is None else top
            if first != top:
                extraction.reject("confusion", "it has more than one top folder")
            content = tar.iterate_content(header.size)
            if path and header.kind != _FOLDER:
                is_file, is_executable = header.kind in _FILES, bool(header.mode & _EXECUTABLE)
                yield TarMember(path, header.size, is_file, is_executable, content)
            for _ in content:  # the part that the caller did not read
                pass


class _Header(NamedTuple):
    kind: bytes
    raw_name: bytes
    size: int
    mode: int


@dataclass(slots=True)
class _ChunkReader:
    """Reads exact numbers of bytes from chunks of any size."""

    chunks: Iterator[bytes]
    buffer: bytearray = field(default_factory=bytearray)

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end of the stream."""
        while len(self.buffer) < size and (chunk := next(self.chunks, b"")):
            self.buffer += chunk
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data


@dataclass(slots=True)
class _TarReader:
    """Reads a tar file, and keeps the extension headers of the next member."""

    stream: _ChunkReader
    extraction: ArchiveExtraction
    skip_links: bool = False  # accept links, which are rejected otherwise
    pax_records: Mapping[bytes, bytes] | None = None
    long_name: bytes | None = None
    extension_bytes: int = 0

    def next_header(self) -> _Header | None:
        """Read the next header; `None` at the end. Raises: ArchiveRejected, TooLarge."""
        block = self._read_exactly(_BLOCK)
        if block == _ZEROS:
            self._check_end()
            return None
        if self._parse_octal(block[148:156]) != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
            self.extraction.reject("malformed", "the checksum of a header is wrong")
        name, size = block[:100].partition(b"\x00")[0], block[124:136]
        prefix = block[345:500].partition(b"\x00")[0]
        if block[_MAGIC_AT:].startswith(_POSIX) and prefix:
            name = prefix + b"/" + name
        if size[0] & _BASE_256:  # base-256 sizes are needed for 8 GiB and more only
            raise TooLarge(self.extraction.name, self.extraction.limits.file)
        mode = self._parse_octal(block[100:108])
        return _Header(block[156:157], name, self._parse_octal(size), mode)

    def read_extension(self, header: _Header) -> bool:
        """Read `header` if it is an extension header; return whether it was one.

        Raises: ArchiveRejected, TooLarge.
        """
        if header.kind == _PAX and self.pax_records is None:
            self.pax_records = self._read_pax_records(header)
        elif header.kind == _LONG_NAME and self.long_name is None:
            self.long_name = self._read_extension_data(header).rstrip(b"\x00")
        elif header.kind == _GLOBAL:
            self.extraction.count_entries()
            records = self._read_pax_records(header)
            if any(key in _OVERRIDING_KEYS or key.startswith(_SPARSE) for key in records):
                problem = "a global record changes the names or sizes of members"
                self.extraction.reject("confusion", problem)
        elif header.kind in (_PAX, _LONG_NAME):
            self.extraction.reject(
                "confusion", "a member has two extension headers of the same kind"
            )
        else:
            return False
        return True

    def read_member_name(self, header: _Header) -> bytes:
        """Return the name of a file, folder, link or device. Raises: ArchiveRejected."""
        self.extraction.count_entries()
        if header.kind not in _FILES and header.size:  # readers disagree about where it ends
            self.extraction.reject("confusion", "a member that is not a file has content")
        if header.kind not in _FILES + _FOLDER + _LINKS + _DEVICES:
            self.extraction.reject("special", "it contains a member of an unknown kind")
        return self._resolve_name(header)

    def extract_member(self, header: _Header) -> None:
        """Add the member to the extraction. Raises: ArchiveRejected, TooLarge."""
        self.extraction.count_entries()
        if header.kind in _LINKS:
            self.extraction.reject("link", "it contains a link")
        if header.kind not in _FILES + _FOLDER:
            self.extraction.reject("special", "a member is neither a file nor a folder")
        raw = self._resolve_name(header)
        if header.kind == _FOLDER:
            if header.size:
                self.extraction.reject("confusion", "a folder has content of its own")
            self.extraction.claim_path(raw, is_folder=True)
            return
        if raw.endswith(b"/"):  # old versions of tar marked folders this way
            self.extraction.reject(
                "confusion", "a member's name ends in a slash, but it is not a folder"
            )
        path = self.extraction.claim_path(raw, is_folder=False)
        self.extraction.check_file_size(path, header.size)
        content, is_executable = self._read_content(header.size), bool(header.mode & _EXECUTABLE)
        self.extraction.add_file(path, content, executable=is_executable)

    def _resolve_name(self, header: _Header) -> bytes:
        records, long_name = self.pax_records or {}, self.long_name
        self.pax_records = self.long_name = None
        if b"linkpath" in records and not self.skip_links:
            self.extraction.reject("link", "it contains a link")
        if any(key.startswith(_SPARSE) for key in records):
            self.extraction.reject("special", "it contains a sparse file")
        # Readers disagree about which size applies. Files below 8 GiB need no size record.
        size = records.get(b"size", b"%d" % header.size)
        if b"hdrcharset" in records or size != b"%d" % header.size:
            self.extraction.reject("confusion", "the pax records of a member contradict its header")
        names = [name for name in (records.get(b"path"), long_name) if name is not None]
        if len(names) > 1:
            self.extraction.reject("confusion", "a member has two names")
        return names[0] if names else header.raw_name

    def _read_pax_records(self, header: _Header) -> Mapping[bytes, bytes]:
        data = self._read_extension_data(header)
        records: dict[bytes, bytes] = {}
        position = 0
        while position < len(data):
            digits = data[position : position + _MAX_DIGITS].partition(b" ")[0]
            length = int(digits) if digits.isdigit() else 0
            if not length:
                self.extraction.reject("malformed", "a number in a header is malformed")
            record = data[position : position + length]
            key, equals, value = record.partition(b" ")[2][:-1].partition(b"=")
            if len(record) < length or not record.endswith(b"\n") or not equals:
                self.extraction.reject("malformed", "a pax record is malformed")
            if key in records:
                self.extraction.reject(
                    "confusion", "a header has two pax records with the same key"
                )
            records[key] = value
            position += length
        return records

    def _read_extension_data(self, header: _Header) -> bytes:
        self.extension_bytes += header.size
        if self.extension_bytes > _MAX_EXTENSIONS:
            raise TooLarge(self.extraction.name, _MAX_EXTENSIONS, "bytes of extension headers")
        return self._read_content(header.size)

    def _read_content(self, size: int) -> bytes:
        return self._read_exactly(size + -size % _BLOCK)[:size]

    def iterate_content(self, size: int) -> Iterator[bytes]:
        """Yield the content of a member in chunks. Raises: ArchiveRejected, TooLarge."""
        remaining = size
        while remaining > 0:
            chunk_size = min(remaining, _CHUNK_SIZE)
            yield self._read_exactly(chunk_size)
            remaining -= chunk_size
        self._read_exactly(-size % _BLOCK)

    def _read_exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            self.extraction.reject("malformed", "it is truncated")
        return data

    def _check_end(self) -> None:
        if self.pax_records is not None or self.long_name is not None:
            self.extraction.reject("malformed", "the last member is missing")
        rest = self._read_exactly(_BLOCK)
        while rest:
            if rest.strip(b"\x00"):
                self.extraction.reject("confusion", "it has data after its end marker")
            rest = self.stream.read(128 * _BLOCK)

    def _parse_octal(self, digits: bytes) -> int:
        digits = digits.strip(b" \x00")
        if digits.strip(b"01234567"):
            self.extraction.reject("malformed", "a number in a header is malformed")
        return int(digits or b"0", 8)
