"""Packed stat signatures, which tell whether a file or folder has changed.

A signature consists of mtime, ctime, size and inode. An edit that restores the mtime still changes
the ctime. As bytes, it needs a third of the memory of a tuple, and many are compared at once.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from typing import TypeAlias

    PackedSignature: TypeAlias = bytes

SIGNATURE_SIZE = 32  # bytes
_PACK = Struct("=4Q").pack
_UNPACK = Struct("=2q2Q").unpack  # times may be before 1970
_MASK = (1 << 64) - 1  # file systems can store times that need more bits


def pack_signature(status: os.stat_result) -> PackedSignature:
    """Return the signature of a file or folder."""
    return _PACK(
        status.st_mtime_ns & _MASK,
        status.st_ctime_ns & _MASK,
        status.st_size,
        status.st_ino & _MASK,
    )


def unpack_signature(signature: PackedSignature) -> tuple[int, int, int, int]:
    """Return mtime, ctime, size and inode."""
    numbers: tuple[int, int, int, int] = _UNPACK(signature)
    return numbers


def get_last_change(signature: PackedSignature) -> int:
    """Return the later of mtime and ctime, in nanoseconds."""
    times: tuple[int, int] = _UNPACK(signature)[:2]
    return max(times)


def get_size(signature: PackedSignature) -> int:
    """Return the size in bytes."""
    size: int = _UNPACK(signature)[2]
    return size
