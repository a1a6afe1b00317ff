"""Encoding of vectors: the scale of the vector, then one byte for each number.

A vector with 384 dimensions takes 388 bytes. Rounding changes a similarity by less than 0.01.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.embeddings.embedding_model import Vector

SCALE = struct.Struct("<f")
_MAX_STEP = 127  # the largest value of a signed byte


def encode_vector(vector: Vector) -> bytes:
    """Encode a vector of length 1."""
    scale = max(map(abs, vector)) / _MAX_STEP
    return SCALE.pack(scale) + array("b", [round(number / scale) for number in vector]).tobytes()


def decode_vector(data: bytes) -> list[float]:
    """Return the numbers of an encoded vector."""
    (scale,) = SCALE.unpack_from(data)
    return [scale * number for number in array("b", data[SCALE.size :])]


def count_dimensions(data: bytes) -> int:
    """Return the number of dimensions of an encoded vector."""
    return len(data) - SCALE.size
