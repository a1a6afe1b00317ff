"""Zip and tar files built byte by byte, so that every field can be wrong."""

import gzip
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.skills import make_skill_md

UTF8, STREAMED = 1 << 11, 1 << 3
STORED, DEFLATED = 0, 8
SKILL = make_skill_md("pdf")


def deflate(data: bytes) -> bytes:
    """Compress data as a raw deflate stream, as in zip files."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@dataclass(frozen=True)
class ZipEntry:
    """Entry of a zip file; overrides replace fields of one of its two headers."""

    name: str | bytes
    data: bytes = b"x"
    mode: int = 0o100644
    method: int = DEFLATED
    flags: int = UTF8
    packed_data: bytes | None = None  # replaces the packed bytes
    dos: int = 0
    extra: bytes = b""
    trailing_data: bytes = b""  # after the body
    local_overrides: Mapping[str, int | bytes] = field(default_factory=dict)
    central_overrides: Mapping[str, int | bytes] = field(default_factory=dict)

    @property
    def packed(self) -> bytes:
        if self.packed_data is not None:
            return self.packed_data
        return deflate(self.data) if self.method == DEFLATED else self.data

    def header(self, offset: int, changes: Mapping[str, int | bytes]) -> dict[str, int | bytes]:
        name = self.name.encode() if isinstance(self.name, str) else self.name
        fields: dict[str, int | bytes] = {
            "name": name,
            "flags": self.flags,
            "method": self.method,
            "crc": zlib.crc32(self.data),
            "packed": len(self.packed),
            "size": len(self.data),
            "extra": self.extra,
            "attributes": self.mode << 16 | self.dos,
            "offset": offset,
            "disk": 0,
            "sign": b"PK",
        }
        return {**fields, **changes}


def _require_bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def local_header(entry: ZipEntry) -> bytes:
    values = entry.header(0, entry.local_overrides)
    name, extra = _require_bytes(values["name"]), _require_bytes(values["extra"])
    fixed = struct.pack(
        "<5H3L2H",
        *(20, values["flags"], values["method"], 0, 0x21),
        *(values["crc"], values["packed"], values["size"]),
        *(len(name), len(extra)),
    )
    return _require_bytes(values["sign"]) + b"\x03\x04" + fixed + name + extra


def central_header(entry: ZipEntry, offset: int) -> bytes:
    values = entry.header(offset, entry.central_overrides)
    name, extra = _require_bytes(values["name"]), _require_bytes(values["extra"])
    fixed = struct.pack(
        "<6H3L5H2L",
        *(3 << 8 | 20, 20, values["flags"], values["method"], 0, 0x21),
        *(values["crc"], values["packed"], values["size"]),
        *(len(name), len(extra), 0, values["disk"], 0),
        *(values["attributes"], values["offset"]),
    )
    return _require_bytes(values["sign"]) + b"\x01\x02" + fixed + name + extra


def make_zip(
    *entries: ZipEntry, prefix: bytes = b"", comment: bytes = b"", listed: int | None = None
) -> bytes:
    """Build a zip file; only the first `listed` entries are in its directory."""
    data, offsets = prefix, []
    for entry in entries:
        offsets.append(len(data))
        data += local_header(entry) + entry.packed + entry.trailing_data
    pairs = list(zip(entries, offsets, strict=True))[:listed]
    directory = b"".join(central_header(entry, offset) for entry, offset in pairs)
    return data + directory + zip_end(len(pairs), len(directory), len(data), comment)


def zip_end(
    entries: int, size: int, start: int, comment: bytes = b"", *, parts: tuple[int, int] = (0, 0)
) -> bytes:
    """Build an end record; `parts`: number of this part, and entries in other parts."""
    part, elsewhere = parts
    numbers = (part, 0, entries - elsewhere, entries, size, start, len(comment))
    return b"PK\x05\x06" + struct.pack("<4H2LH", *numbers) + comment


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """Build a valid zip file."""
    return make_zip(*(ZipEntry(name, data) for name, data in files.items()))


def extra_field(kind: int, value: bytes) -> bytes:
    return struct.pack("<2H", kind, len(value)) + value


@dataclass(frozen=True)
class TarEntry:
    """Member of a tar file; `size` and `checksum` replace the correct values."""

    name: str | bytes
    data: bytes = b"x"
    kind: bytes = b"0"
    mode: bytes = b"0000644\x00"
    magic: bytes = b"ustar\x0000"
    prefix: bytes = b""
    link: bytes = b""
    size: bytes | None = None
    checksum: bytes | None = None


def tar_member(entry: TarEntry) -> bytes:
    name = entry.name.encode() if isinstance(entry.name, str) else entry.name
    size = b"%011o\x00" % len(entry.data) if entry.size is None else entry.size
    start = name.ljust(100, b"\x00") + entry.mode + b"0000000\x00" * 2 + size + b"0" * 11 + b"\x00"
    end = entry.kind + entry.link.ljust(100, b"\x00") + entry.magic.ljust(88, b"\x00")
    end = (end + entry.prefix).ljust(512 - len(start) - 8, b"\x00")
    checksum = b"%06o\x00 " % (sum(start + end) + 8 * 32)
    header = start + (entry.checksum or checksum) + end
    return header + entry.data + bytes(-len(entry.data) % 512)


def make_tar(*entries: TarEntry, end: bytes = bytes(1024)) -> bytes:
    return b"".join(map(tar_member, entries)) + end


def make_tgz(*entries: TarEntry, end: bytes = bytes(1024)) -> bytes:
    return gzip.compress(make_tar(*entries, end=end), mtime=0)


def tgz_of(files: Mapping[str, bytes]) -> bytes:
    """Build a valid tar.gz file."""
    return make_tgz(*(TarEntry(name, data) for name, data in files.items()))


def pax(records: Mapping[str, str | bytes], kind: bytes = b"x") -> TarEntry:
    """Build the pax header of the next member."""
    return TarEntry(
        "PaxHeader", b"".join(map(pax_record, *zip(*records.items(), strict=True))), kind
    )


def pax_record(key: str, value: str | bytes) -> bytes:
    text = key.encode() + b"=" + (value.encode() if isinstance(value, str) else value) + b"\n"
    length = len(text) + 2
    while length != len(text) + 1 + len(str(length)):
        length += 1
    return b"%d " % length + text
