"""Interface of vector stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from skillhall._internal.embeddings.embedding_model import Vector

MAX_VECTORS = 200_000  # limit for all models together; vectors in use are never deleted


class StoredVector(NamedTuple):
    """Encoded vector with its position, which grows with every added vector."""

    position: int
    digest: str
    data: bytes


class StoreUsage(NamedTuple):
    """Size of a store."""

    vectors: int
    size: int  # bytes
    vectors_by_model: Mapping[str, int]


class RankedVectors(Protocol):
    """Stored vectors of one model, to be ranked; thread-safe."""

    def read_dimensions(self) -> int:
        """Return the number of dimensions of the vectors; 0 if there are none."""

    def rank(self, query: Vector, k: int, digests: Collection[str]) -> Sequence[str]:
        """Return up to `k` of the digests that have a vector, nearest first."""


class VectorStore(Protocol):
    """Encoded vectors by model and digest of the text; thread-safe.

    All vectors of a model have the same dimensions. Adding vectors with different dimensions
    deletes the old ones.
    """

    def find_missing(self, model: str, digests: Iterable[str]) -> list[str]:
        """Return the digests without a vector, in the given order, without duplicates."""

    def add(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors with the same dimensions by digest, all or none."""

    def read(self, model: str, after: int = 0) -> Iterable[StoredVector]:
        """Yield the vectors of a model that were added after the position `after`."""

    def open_ranking(self, model: str) -> RankedVectors:
        """Return the vectors of a model for ranking, including any added later."""

    def prune(self, model: str, in_use: Collection[str]) -> int:
        """Delete the oldest vectors over the limit that are not in use; return how many.

        `in_use` has digests of `model`; vectors of other models count as not in use.
        """

    def clear(self) -> int:
        """Delete all vectors; return how many."""

    def measure(self) -> StoreUsage:
        """Return the size of the store."""
