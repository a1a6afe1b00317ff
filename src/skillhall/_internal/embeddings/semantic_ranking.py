"""Ranking of skills by meaning, for search.

A search must neither fail nor wait because of an embedding model: after a short timeout, or while
the model fails, the ranking is empty.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from skillhall._internal.background import BoundedPool, PoolFull
from skillhall._internal.cache import LruCache
from skillhall._internal.embeddings.embedding_model import EmbeddingFailed
from skillhall._internal.embeddings.embedding_text import clean_text
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from skillhall._internal.embeddings.embedding_model import EmbeddingModel, Vector
    from skillhall._internal.embeddings.vector_store import VectorStore

QUERY_TIMEOUT: Final = 2.0  # seconds that a search waits for the model
RETRY_INTERVAL: Final = 30.0  # seconds without a request to a model that failed
MAX_QUERY: Final = 2000  # characters; the rest of a query is not sent
_CACHED_QUERIES = 256
_THREADS, _WAITING = 4, 16
_LOG = logging.getLogger("skillhall.embeddings")


class SemanticRanking(Protocol):
    """Ranking of skills by meaning; thread-safe."""

    @property
    def is_enabled(self) -> bool:
        """Whether an embedding model is configured."""

    @property
    def problem(self) -> str:
        """Why the model cannot be used at the moment; "" if it works."""

    def rank(self, query: str, digests: Collection[str], k: int) -> Sequence[str]:
        """Return up to `k` of the digests, the nearest to the query first.

        `digests` are those of embedding texts. Digests whose vectors have not been computed yet are
        left out. The result is empty if the model is slow or fails. Never raises.
        """


class DisabledRanking:
    """Ranking without a model, which is always empty."""

    is_enabled = False
    problem = ""

    def rank(self, query: str, digests: Collection[str], k: int) -> Sequence[str]:  # noqa: ARG002
        """Return an empty ranking."""
        return ()


class ModelRanking:
    """Ranking by an embedding model and stored vectors.

    If the model is slow or fails, the problem is logged once, and the model is not contacted for a
    while.
    """

    is_enabled = True

    def __init__(
        self,
        model: EmbeddingModel,
        store: VectorStore,
        timeout: float = QUERY_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._vectors = store.open_ranking(model.id)
        self._timeout = timeout
        self._breaker = _CircuitBreaker(clock)
        self._queries: LruCache[str, Vector] = LruCache(_CACHED_QUERIES)
        self._pool = BoundedPool("embeddings", _THREADS, _WAITING)

    @property
    def problem(self) -> str:
        """Why the model cannot be used at the moment; "" if it works."""
        return self._breaker.problem

    def rank(self, query: str, digests: Collection[str], k: int) -> Sequence[str]:
        """Return up to `k` of the digests, the nearest to the query first.

        Digests whose vectors have not been computed yet are left out. The result is empty if the
        model is slow or fails, which is logged once. Never raises.
        """
        text = clean_text(query[:MAX_QUERY]).strip()
        if not text or not digests or not self._breaker.allows_request():
            return ()
        try:
            future = self._pool.submit(lambda: self._rank(text, digests, k))
        except PoolFull:
            return ()
        try:
            ranked = future.result(self._timeout)
        except TimeoutError:
            self._pool.give_up(future)
            self._breaker.open(f"no response within {self._timeout:g} seconds")
        except SkillhallError as error:
            self._breaker.open(str(error))
        except Exception as error:  # noqa: BLE001 - a search works without this ranking
            # Only the type: the message of a third-party library may contain a secret.
            self._breaker.open(f"internal error ({type(error).__name__})")
        else:
            self._breaker.close()
            return ranked
        return ()

    def _rank(self, text: str, digests: Collection[str], k: int) -> Sequence[str]:
        dimensions = self._vectors.read_dimensions()
        if not dimensions:
            return ()  # nothing is built yet, so the query need not be sent
        vector = self._queries.get(text)
        if vector is None:
            vector = self._model.embed_query(text, self._timeout)
            self._queries.put(text, vector)
        if len(vector) != dimensions:
            problem = f"it returned {len(vector)} dimensions, but the stored vectors have "
            problem += f"{dimensions}; clear the embeddings and build them again"
            raise EmbeddingFailed(self._model.id, problem)
        return self._vectors.rank(vector, k, digests)


@dataclass(slots=True)
class _CircuitBreaker:
    """Allows one request in each interval while the model fails."""

    clock: Callable[[], float]
    problem: str = ""
    _retry_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allows_request(self) -> bool:
        with self._lock:
            if not self.problem:
                return True
            if self.clock() < self._retry_at:
                return False
            self._retry_at = self.clock() + RETRY_INTERVAL  # other searches do not try, too
            return True

    def open(self, problem: str) -> None:
        with self._lock:
            is_first, self.problem = not self.problem, problem
            self._retry_at = self.clock() + RETRY_INTERVAL
        if is_first:
            _LOG.warning("search continues without embeddings: %s", problem)

    def close(self) -> None:
        with self._lock:
            was_open, self.problem = bool(self.problem), ""
        if was_open:
            _LOG.info("search uses embeddings again")
