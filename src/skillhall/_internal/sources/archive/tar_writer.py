"""Reproducible tar files: the same files always give the same bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def pack_tar(entries: Iterable[tuple[str, bytes, int]], timestamp: int = 0) -> bytes:
    """Pack files as a tar file, in this order, each with its path, content and mode."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data, mode in entries:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(data), mode, timestamp
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def compress(data: bytes) -> bytes:
    """Compress with gzip, without a timestamp."""
    return gzip.compress(data, mtime=0)
