"""Interface of embedding models, and the checks that every vector must pass."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Protocol, TypeAlias

from skillhall.errors import ModelUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Vector: TypeAlias = "array[float]"  # array of type "f", normalized to length 1

MAX_DIMENSIONS = 16_384  # the largest known models have 8,192


class EmbeddingFailed(ModelUnavailable):
    """A request to an embedding model failed.

    The code is `invalid_argument` if the model rejects a text.
    """

    retry_after: float = 0.0  # seconds that the server asked to wait
    is_temporary: bool = True  # whether the same request may succeed later


class EmbeddingModel(Protocol):
    """Model that turns texts into vectors with the same dimensions; thread-safe."""

    @property
    def id(self) -> str:
        """Name under which vectors are stored; equal ids mean comparable vectors."""

    @property
    def batch_size(self) -> int:
        """The preferred number of texts in a call."""

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text. Raises: EmbeddingFailed, ConfigInvalid."""

    def embed_query(self, text: str, timeout: float) -> Vector:
        """Return the vector of a query. Raises: EmbeddingFailed, ConfigInvalid.

        A model that can be interrupted fails after `timeout` seconds.
        """


def normalize_vector(numbers: Iterable[float]) -> Vector:
    """Scale a vector to length 1. Raises: ValueError if it is zero or invalid."""
    vector = array("f", numbers)
    length = math.sqrt(math.fsum(number * number for number in vector))
    if not math.isfinite(length):
        raise ValueError("a vector contains a number that is not finite")
    if not length:
        raise ValueError("a vector contains only zeros")
    if len(vector) > MAX_DIMENSIONS:
        raise ValueError(f"a vector has more than {MAX_DIMENSIONS} numbers")
    return array("f", [number / length for number in vector])
