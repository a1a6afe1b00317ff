"""Cache of gzip-compressed lists, one per snapshot.

All responses of a snapshot are equal except for the `meta` at their end. The equal part is cached
as deflate blocks that end at a byte boundary. The `meta` is compressed for each response and
appended.
"""

from __future__ import annotations

import threading
import zlib
from typing import NamedTuple

MIN_COMPRESSED_BYTES = 16_384  # smaller responses are not worth compressing
_MAX_ENTRIES = 4  # snapshots
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # magic, deflate, no time, unknown system
_RAW_DEFLATE = -15  # zlib's wbits for deflate without header and checksum


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
        """Whether the list of this snapshot is cached."""
        return digest in self._parts

    def compress(self, parts: tuple[bytes, ...], digest: str) -> tuple[bytes, ...]:
        """Return the compressed parts; only the last one differs between responses."""
        *first, tail = parts
        part = self._parts.get(digest)
        if part is None:
            part = _deflate(first)
            with self._lock:
                self._parts[digest] = part
                while len(self._parts) > _MAX_ENTRIES:
                    del self._parts[next(iter(self._parts))]
        end = zlib.compressobj(6, zlib.DEFLATED, _RAW_DEFLATE)
        last = end.compress(tail) + end.flush()
        check = zlib.crc32(tail, part.crc)
        length = (part.length + len(tail)) & 0xFFFFFFFF
        trailer = check.to_bytes(4, "little") + length.to_bytes(4, "little")
        return _GZIP_HEADER, part.blocks, last + trailer


def _deflate(chunks: list[bytes]) -> _DeflatedPart:
    data = b"".join(chunks)
    compressor = zlib.compressobj(6, zlib.DEFLATED, _RAW_DEFLATE)
    blocks = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return _DeflatedPart(blocks, zlib.crc32(data), len(data))
