"""Embedding model that runs in this process, with the package `fastembed`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from skillhall._internal.embeddings.embedding_model import EmbeddingFailed, normalize_vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from skillhall._internal.embeddings.embedding_model import Vector

    class _TextEmbedding(Protocol):
        """Model class of `fastembed`, whose vectors are NumPy arrays."""

        def passage_embed(self, texts: Iterable[str]) -> Iterable[Iterable[float]]: ...
        def query_embed(self, query: str) -> Iterable[Iterable[float]]: ...


PREFIX: Final = "fastembed:"  # of model names
BATCH_SIZE: Final = 64


class FastEmbedModel:
    """Model from the package `fastembed`, loaded on first use."""

    def __init__(self, name: str, cache_directory: str) -> None:
        self.id = f"{PREFIX}{name}"
        self.batch_size = BATCH_SIZE
        self._name = name
        self._cache_directory = cache_directory
        self._loaded: _TextEmbedding | None = None
        self._lock = threading.Lock()

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text. Raises: EmbeddingFailed."""
        return self._normalize(self._load().passage_embed(texts), len(texts))

    def embed_query(self, text: str, timeout: float) -> Vector:  # noqa: ARG002 - cannot stop
        """Return the vector of a query. Raises: EmbeddingFailed."""
        return self._normalize(self._load().query_embed(text), 1)[0]

    def _load(self) -> _TextEmbedding:
        with self._lock:
            if self._loaded is None:
                try:
                    from fastembed import TextEmbedding  # noqa: PLC0415 - an optional extra
                except ImportError:
                    raise self._failure(
                        "the package 'fastembed' is not installed",
                        "install it: pip install 'skillhall[embeddings]'",
                    ) from None
                try:
                    self._loaded = TextEmbedding(self._name, cache_dir=self._cache_directory)
                except Exception as error:
                    # It downloads the model first, and raises errors of several libraries.
                    raise self._failure(
                        f"it cannot be loaded ({type(error).__name__})",
                        "check its name, and that this machine can download it",
                    ) from error
            return self._loaded

    def _normalize(self, vectors: Iterable[Iterable[float]], count: int) -> list[Vector]:
        try:
            normalized = [normalize_vector(vector) for vector in vectors]
        except Exception as error:
            raise self._failure(f"it failed ({type(error).__name__})") from error
        if len(normalized) != count:
            raise self._failure(f"it returned {len(normalized)} vectors for {count} texts")
        return normalized

    def _failure(self, problem: str, hint: str = "") -> EmbeddingFailed:
        return EmbeddingFailed(self.id, problem, hint, is_temporary=False)
