"""Ranking of many vectors in memory, without a numerical library.

Multiplying all numbers of 60,000 vectors in Python takes more than a second. So the index first
compares only the signs of the numbers, as the bits of one large integer for each vector: the
number of different signs grows with the angle. The best few hundred are then compared exactly.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from operator import mul
from typing import TYPE_CHECKING

from skillhall._internal.embeddings.vector_codec import SCALE, count_dimensions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from skillhall._internal.embeddings.embedding_model import Vector
    from skillhall._internal.embeddings.vector_store import VectorStore

# Numbers of vectors that are compared exactly: per requested result, and the minimum. See
# docs/decisions/0033 for the recall.
CANDIDATE_FACTOR = 8
MIN_CANDIDATES = 400
_SIGN_DIGITS = bytes.maketrans(bytes(range(256)), b"0" * 128 + b"1" * 128)
_QUERY_STEPS = 2**15  # scales numbers to integers, which Python multiplies fastest


class VectorIndex:
    """Encoded vectors of one model by digest, all with the same dimensions.

    One thread may add vectors while others rank.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._row_by_digest: dict[str, int] = {}
        self._digests: list[str] = []
        self._signs: list[int] = []
        self._vectors: list[bytes] = []
        self._unpack = struct.Struct(f"<{SCALE.size}x{dimensions}b").unpack

    def __len__(self) -> int:
        return len(self._row_by_digest)

    def add(self, digest: str, data: bytes) -> None:
        """Add an encoded vector, unless its digest is known or its dimensions differ."""
        if digest not in self._row_by_digest and count_dimensions(data) == self.dimensions:
            self._digests.append(digest)
            self._signs.append(_read_signs(data[SCALE.size :]))
            self._vectors.append(data)
            # Set last, because other threads look rows up here.
            self._row_by_digest[digest] = len(self._vectors) - 1

    def rank(
        self, query: Vector, k: int, digests: Iterable[str] | None = None
    ) -> list[tuple[str, float]]:
        """Return the `k` vectors nearest to the query with their similarity, best first.

        With `digests`, only these are ranked; unknown ones are ignored. Vectors with the same
        similarity are sorted by digest.
        """
        if k <= 0 or len(query) != self.dimensions:
            return []
        find = self._row_by_digest.get
        wanted = range(len(self)) if digests is None else map(find, digests)
        rows = [row for row in wanted if row is not None]
        steps = [round(number * _QUERY_STEPS) for number in query]
        rows = self._select_by_signs(rows, steps, max(CANDIDATE_FACTOR * k, MIN_CANDIDATES))
        scored = [(-self._multiply(row, steps), self._digests[row]) for row in rows]
        scored.sort()
        return [(name, -score) for score, name in scored[:k]]

    def _multiply(self, row: int, steps: list[int]) -> float:
        data = self._vectors[row]
        product: int = sum(map(mul, self._unpack(data), steps))
        return float(SCALE.unpack_from(data)[0]) * product / _QUERY_STEPS

    def _select_by_signs(self, rows: list[int], steps: list[int], count: int) -> list[int]:
        """Return the `count` rows with the nearest signs, and any ties with the last one."""
        if len(rows) <= count:
            return rows
        query = _read_signs(bytes(step < 0 and 0x80 for step in steps))
        signs = self._signs
        distances = [(signs[row] ^ query).bit_count() for row in rows]
        # Sorting all distances would take longer than computing them.
        counts = Counter(distances)
        limit, remaining = -1, count
        while remaining > 0:
            limit += 1
            remaining -= counts[limit]
        return [row for row, distance in zip(rows, distances, strict=True) if distance <= limit]


class LoadedVectors:
    """Vectors of one model, loaded from a store; grows with the store. Thread-safe."""

    def __init__(self, model: str, store: VectorStore) -> None:
        self._model = model
        self._store = store
        self._index = VectorIndex(0)
        self._position = 0
        self._lock = threading.Lock()

    def read_dimensions(self) -> int:
        """Load new vectors; return the number of dimensions, 0 without vectors.

        Raises: errors of the store.
        """
        with self._lock:
            for position, digest, data in self._store.read(self._model, self._position):
                # Vectors of another length have replaced all earlier vectors of the model.
                if count_dimensions(data) != self._index.dimensions:
                    self._index = VectorIndex(count_dimensions(data))
                self._index.add(digest, data)
                self._position = position
            return self._index.dimensions

    def rank(self, query: Vector, k: int, digests: Collection[str]) -> list[str]:
        """Return up to `k` of the digests, nearest first."""
        return [digest for digest, _ in self._index.rank(query, k, digests)]


def _read_signs(numbers: bytes) -> int:
    """Return the signs of signed bytes as the bits of one integer."""
    return int(numbers.translate(_SIGN_DIGITS), 2)
