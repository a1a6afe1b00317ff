"""Large lists in gzip, compressed once for each snapshot.

What precedes the meta of an answer is the same for everybody. It is kept as deflated blocks that
end at a byte; the few bytes of the meta are deflated for each answer and follow as further blocks.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.response import Answer

if TYPE_CHECKING:
    from skillhall._internal.http.request import Exchange

_SMALLEST = 16_384  # bytes; below it nothing is gained
_KEPT = 4  # snapshots
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # gzip, deflate, no time, no system
_RAW = -15  # deflate alone, without a wrapper


class _Part(NamedTuple):
    blocks: bytes
    check: int
    length: int


class Packed:
    """The compressed lists of the last few snapshots."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self._lock = threading.Lock()

    def has(self, digest: str) -> bool:
        """Whether that snapshot's list is compressed already."""
        return digest in self._parts

    def wants(self, exchange: Exchange, ready: Answer) -> bool:
        """Whether the answer is large and its reader takes gzip."""
        if sum(map(len, ready.parts)) < _SMALLEST:
            return False
        return _takes_gzip(exchange.header(b"accept-encoding") or b"")

    def packed(self, ready: Answer, digest: str) -> Answer:
        """The same answer, compressed."""
        *first, tail = ready.parts
        part = self._parts.get(digest)
        if part is None:
            part = _deflated(first)
            self._keep(digest, part)
        end = zlib.compressobj(6, zlib.DEFLATED, _RAW)
        last = end.compress(tail) + end.flush()
        check = zlib.crc32(tail, part.check)
        length = (part.length + len(tail)) & 0xFFFFFFFF
        trailer = check.to_bytes(4, "little") + length.to_bytes(4, "little")
        headers = (*ready.headers, (b"content-encoding", b"gzip"))
        return Answer(ready.status, headers, (_HEAD, part.blocks, last + trailer))

    def _keep(self, digest: str, part: _Part) -> None:
        with self._lock:
            self._parts[digest] = part
            while len(self._parts) > _KEPT:
                del self._parts[next(iter(self._parts))]


def _deflated(pieces: list[bytes]) -> _Part:
    packer = zlib.compressobj(6, zlib.DEFLATED, _RAW)
    blocks, check = b"", 0
    for piece in pieces:
        blocks += packer.compress(piece)
        check = zlib.crc32(piece, check)
    return _Part(blocks + packer.flush(zlib.Z_SYNC_FLUSH), check, sum(map(len, pieces)))


def _takes_gzip(accepted: bytes) -> bool:
    for one in accepted.lower().split(b","):
        coding, _, weight = one.replace(b" ", b"").partition(b";")
        if coding == b"gzip":
            return weight.rstrip(b"0") not in (b"q=", b"q=.", b"q=0.")
    return False
