"""Vectors in PostgreSQL, shared by all servers of a database.

The table is a cache. It is created on first use and is not part of the schema, so that it is not in
backups, and servers without embeddings are not affected. If the extension pgvector is
installed in the database, the vectors are also stored in its type, and the database ranks them.
"""

from __future__ import annotations

import threading
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from skillhall._internal.embeddings.vector_codec import count_dimensions, decode_vector
from skillhall._internal.embeddings.vector_index import LoadedVectors
from skillhall._internal.embeddings.vector_store import MAX_VECTORS, StoredVector, StoreUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeVar

    from sqlalchemy import Connection

    from skillhall._internal.embeddings.embedding_model import Vector
    from skillhall._internal.embeddings.vector_store import RankedVectors
    from skillhall._internal.storage.sql.engine import Database

    _T = TypeVar("_T")

_LOCK: Final = 7_223_446_120_933  # id of the advisory lock for writers of the table
_QUERY_SIZE: Final = 500  # digests or rows of a statement
_MAX_FILTERED: Final = 1000  # digests that the database filters by; more would be slow to send
_CREATE = """CREATE TABLE IF NOT EXISTS embedding_vectors (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, model TEXT NOT NULL,
    digest BYTEA NOT NULL, data BYTEA NOT NULL, UNIQUE (model, digest))"""
_EXTENSION = """SELECT quote_ident(nspname) FROM pg_extension
    JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"""
_HAS_COLUMN = """SELECT 1 FROM pg_attribute
    WHERE attrelid = 'embedding_vectors'::regclass AND attname = 'value' AND NOT attisdropped"""


class PostgresVectors:
    """Vector store in one table. Methods raise: DatabaseUnavailable, DatabaseFull."""

    def __init__(self, database: Database, max_vectors: int = MAX_VECTORS) -> None:
        self._database = database
        self._max_vectors = max_vectors
        self._schema: str | None = None  # of pgvector, quoted; "" without it, None if unknown
        self._lock = threading.Lock()

    @property
    def pgvector_schema(self) -> str:
        """Quoted schema of pgvector; "" if it is not installed. Creates the table first."""
        with self._lock:
            if self._schema is None:
                self._schema = self._database.write(_create_table)
                if self._schema:
                    self._convert_vectors(self._schema)
            return self._schema

    def find_missing(self, model: str, digests: Iterable[str]) -> list[str]:
        """Return the digests without a vector, in the given order, without duplicates."""
        wanted = [*dict.fromkeys(digests)]
        query = text(
            "SELECT digest FROM embedding_vectors WHERE model = :model AND digest = ANY(:digests)"
        )

        def select(connection: Connection) -> set[str]:
            known: set[str] = set()
            for start in range(0, len(wanted), _QUERY_SIZE):
                keys = [bytes.fromhex(digest) for digest in wanted[start : start + _QUERY_SIZE]]
                rows = connection.execute(query, {"model": model, "digests": keys}).scalars()
                known.update(bytes(row).hex() for row in rows)
            return known

        known = self._read(select)
        return [digest for digest in wanted if digest not in known]

    def add(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors with the same dimensions by digest, all or none."""
        if not vectors:
            return
        schema = self.pgvector_schema
        size = len(next(iter(vectors.values())))
        column, value = (", value", f", CAST(:value AS {schema}.vector)") if schema else ("", "")
        insert = text(
            f"INSERT INTO embedding_vectors (model, digest, data{column}) "  # noqa: S608 - quoted
            f"VALUES (:model, :digest, :data{value}) ON CONFLICT DO NOTHING"
        )
        other_length = text(
            "DELETE FROM embedding_vectors WHERE model = :model AND octet_length(data) != :size"
        )
        rows = [
            {"model": model, "digest": bytes.fromhex(digest), "data": data}
            | ({"value": _format_vector(data)} if schema else {})
            for digest, data in vectors.items()
        ]

        def work(connection: Connection) -> None:
            # One writer at a time, so that readers see positions in the order of commits.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            connection.execute(other_length, {"model": model, "size": size})
            connection.execute(insert, rows)

        self._database.write(work)

    def read(self, model: str, after: int = 0) -> list[StoredVector]:
        """Return the vectors of a model that were added after the position `after`."""
        query = text(
            "SELECT position, digest, data FROM embedding_vectors "
            "WHERE model = :model AND position > :after ORDER BY position"
        )
        rows = self._read(
            lambda connection: connection.execute(query, {"model": model, "after": after}).all()
        )
        return [StoredVector(row[0], bytes(row[1]).hex(), bytes(row[2])) for row in rows]

    def open_ranking(self, model: str) -> RankedVectors:
        """Return the vectors of a model for ranking: by pgvector, or in memory."""
        return _DatabaseRanking(model, self)

    def prune(self, model: str, in_use: Collection[str]) -> int:
        """Delete the oldest vectors over the limit that are not in use; return how many."""
        delete = text(
            "DELETE FROM embedding_vectors WHERE position IN ("
            "SELECT position FROM embedding_vectors AS old WHERE model != :model OR NOT EXISTS "
            "(SELECT FROM unnest(CAST(:in_use AS BYTEA[])) AS used (digest) "
            "WHERE used.digest = old.digest) ORDER BY position LIMIT :excess)"
        )
        excess = self.measure().vectors - self._max_vectors
        if excess <= 0:
            return 0
        keys = [bytes.fromhex(digest) for digest in in_use]
        values = {"model": model, "in_use": keys, "excess": excess}
        return self._database.write(lambda connection: connection.execute(delete, values).rowcount)

    def clear(self) -> int:
        """Delete all vectors; return how many."""
        self.pgvector_schema  # noqa: B018 - creates the table
        return self._database.write(
            lambda connection: connection.execute(text("DELETE FROM embedding_vectors")).rowcount
        )

    def measure(self) -> StoreUsage:
        """Return the size of the store."""
        counts = text("SELECT model, count(*) FROM embedding_vectors GROUP BY model ORDER BY model")
        size = text("SELECT pg_total_relation_size('embedding_vectors')")

        def select(connection: Connection) -> StoreUsage:
            by_model = {str(model): int(n) for model, n in connection.execute(counts)}
            total = int(connection.execute(size).scalar_one())
            return StoreUsage(sum(by_model.values()), total, by_model)

        return self._read(select)

    def rank_by_database(
        self, model: str, query: Vector, limit: int, digests: Sequence[str] | None
    ) -> list[str]:
        """Return the digests nearest to the query; pgvector ranks all, or only `digests`."""
        schema = self.pgvector_schema
        condition = "" if digests is None else "AND digest = ANY(:digests)"
        statement = text(
            "SELECT digest FROM embedding_vectors "  # noqa: S608 - the database quotes its schema
            f"WHERE model = :model AND value IS NOT NULL {condition} "
            f"ORDER BY value OPERATOR({schema}.<=>) CAST(:query AS {schema}.vector), digest "
            "LIMIT :limit"
        )
        values = {
            "model": model,
            "query": f"[{','.join(map(str, query))}]",
            "limit": limit,
            "digests": [bytes.fromhex(digest) for digest in digests or ()],
        }
        if digests is None:
            del values["digests"]
        rows = self._read(lambda connection: connection.execute(statement, values).scalars().all())
        return [bytes(row).hex() for row in rows]

    def read_dimensions(self, model: str) -> int:
        """Return the number of dimensions of a model's vectors; 0 if there are none."""
        query = text("SELECT data FROM embedding_vectors WHERE model = :model LIMIT 1")
        data = self._read(lambda connection: connection.execute(query, {"model": model}).scalar())
        return 0 if data is None else count_dimensions(bytes(data))

    def _read(self, work: Callable[[Connection], _T]) -> _T:
        self.pgvector_schema  # noqa: B018 - creates the table
        return self._database.read(work)

    def _convert_vectors(self, schema: str) -> None:
        """Convert vectors that were added before pgvector was installed to its type."""
        select = text(
            "SELECT position, data FROM embedding_vectors WHERE value IS NULL LIMIT :count"
        )
        update = text(
            f"UPDATE embedding_vectors SET value = CAST(:value AS {schema}.vector) "  # noqa: S608
            "WHERE position = :position"
        )

        def convert(connection: Connection) -> int:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            rows = connection.execute(select, {"count": _QUERY_SIZE}).all()
            if rows:
                values = [{"position": p, "value": _format_vector(bytes(d))} for p, d in rows]
                connection.execute(update, values)
            return len(rows)

        while self._database.write(convert):
            pass


class _DatabaseRanking:
    """Vectors of one model, ranked by pgvector if it is installed, else in memory."""

    def __init__(self, model: str, store: PostgresVectors) -> None:
        self._model = model
        self._store = store
        self._loaded = LoadedVectors(model, store)

    def read_dimensions(self) -> int:
        """Return the number of dimensions of the vectors; 0 if there are none."""
        if self._store.pgvector_schema:
            return self._store.read_dimensions(self._model)
        return self._loaded.read_dimensions()

    def rank(self, query: Vector, k: int, digests: Collection[str]) -> list[str]:
        """Return up to `k` of the digests, nearest first."""
        if not self._store.pgvector_schema:
            return self._loaded.rank(query, k, digests)
        if len(digests) <= _MAX_FILTERED:
            return self._store.rank_by_database(self._model, query, k, [*digests])
        # Almost all stored vectors belong to the caller, so few of the nearest are filtered out.
        wanted = digests if isinstance(digests, AbstractSet) else frozenset(digests)
        limit = 2 * k
        while True:
            nearest = self._store.rank_by_database(self._model, query, limit, None)
            found = [digest for digest in nearest if digest in wanted]
            if len(found) >= k or len(nearest) < limit:
                return found[:k]
            limit *= 4


def _create_table(connection: Connection) -> str:
    """Create the table; return the quoted schema of pgvector, "" if not installed."""
    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    connection.execute(text(_CREATE))
    schema = connection.execute(text(_EXTENSION)).scalar()
    if not schema:
        return ""
    if not connection.execute(text(_HAS_COLUMN)).scalar():
        connection.execute(text(f"ALTER TABLE embedding_vectors ADD COLUMN value {schema}.vector"))
    return str(schema)


def _format_vector(data: bytes) -> str:
    return f"[{','.join(f'{number:.6g}' for number in decode_vector(data))}]"
