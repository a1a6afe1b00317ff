"""Large lists in gzip, compressed once for each snapshot.

What precedes the meta of an answer is the same for everybody. It is kept as deflated blocks that
end at a byte; the few bytes of the meta are deflated for each answer and follow as further blocks.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.response import ByteResponse

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest

_MIN_BYTES = 16_384  # bytes; below it nothing is gained
_MAX_ENTRIES = 4  # snapshots
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # gzip, deflate, no time, no system
_RAW_DEFLATE = -15  # deflate alone, without a wrapper


class _DeflatedPart(NamedTuple):
    blocks: bytes
    crc: int
    length: int


class GzipCache:
    """The compressed lists of the last few snapshots."""

    def __init__(self) -> None:
        self._parts: dict[str, _DeflatedPart] = {}
        self._lock = threading.Lock()

    def has(self, digest: str) -> bool:
        """Whether that snapshot's list is compressed already."""
        return digest in self._parts

    def should_compress(self, request: HttpRequest, response: ByteResponse) -> bool:
        """Whether the answer is large and its reader takes gzip."""
        if sum(map(len, response.parts)) < _MIN_BYTES:
            return False
        return _accepts_gzip(request.header(b"accept-encoding") or b"")

    def compress(self, response: ByteResponse, digest: str) -> ByteResponse:
        """The same answer, compressed."""
        *first, tail = response.parts
        part = self._parts.get(digest)
        if part is None:
            part = _deflate(first)
            self._store(digest, part)
        end = zlib.compressobj(6, zlib.DEFLATED, _RAW_DEFLATE)
        last = end.compress(tail) + end.flush()
        check = zlib.crc32(tail, part.crc)
        length = (part.length + len(tail)) & 0xFFFFFFFF
        trailer = check.to_bytes(4, "little") + length.to_bytes(4, "little")
        headers = (*response.headers, (b"content-encoding", b"gzip"))
        return ByteResponse(response.status, headers, (_GZIP_HEADER, part.blocks, last + trailer))

    def _store(self, digest: str, part: _DeflatedPart) -> None:
        with self._lock:
            self._parts[digest] = part
            while len(self._parts) > _MAX_ENTRIES:
                del self._parts[next(iter(self._parts))]


def _deflate(pieces: list[bytes]) -> _DeflatedPart:
    packer = zlib.compressobj(6, zlib.DEFLATED, _RAW_DEFLATE)
    blocks, check = b"", 0
    for piece in pieces:
        blocks += packer.compress(piece)
        check = zlib.crc32(piece, check)
    return _DeflatedPart(blocks + packer.flush(zlib.Z_SYNC_FLUSH), check, sum(map(len, pieces)))


def _accepts_gzip(accepted: bytes) -> bool:
    for one in accepted.lower().split(b","):
        coding, _, weight = one.replace(b" ", b"").partition(b";")
        if coding == b"gzip":
            return weight.rstrip(b"0") not in (b"q=", b"q=.", b"q=0.")
    return False
