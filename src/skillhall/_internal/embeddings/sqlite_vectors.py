"""Vectors in an SQLite file in the cache folder.

Every operation opens the file, so that several processes can share it and replace it. A damaged
file is deleted and created again: its vectors must be computed again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from skillhall._internal.embeddings.vector_codec import count_dimensions
from skillhall._internal.embeddings.vector_index import LoadedVectors
from skillhall._internal.embeddings.vector_store import MAX_VECTORS, StoredVector, StoreUsage
from skillhall.errors import DatabaseFull, DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import TypeVar

    _T = TypeVar("_T")

FILE_NAME = "vectors.db"
_FORMAT = 1  # increase it if the tables or the encoding of vectors change
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_LOCK_TIMEOUT = 5.0  # seconds; another process commits a batch in milliseconds
_QUERY_SIZE = 500  # digests; SQLite limits the parameters of a statement
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY_CODE = 0xFF  # bits of SQLite's extended error codes
_TABLES = """
CREATE TABLE models (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL
);
CREATE TABLE vectors (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    model INTEGER NOT NULL REFERENCES models,
    digest BLOB NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (model, digest)
);
"""
_LOG = logging.getLogger("skillhall.embeddings")


class SqliteVectors:
    """Vector store in one file, which is created on first use."""

    def __init__(self, folder: str, max_vectors: int = MAX_VECTORS) -> None:
        self.path = os.path.join(folder, FILE_NAME)
        self._max_vectors = max_vectors

    def find_missing(self, model: str, digests: Iterable[str]) -> list[str]:
        """Return the digests without a vector, in the given order, without duplicates."""
        wanted = [*dict.fromkeys(digests)]

        def select(connection: sqlite3.Connection) -> set[str]:
            known: set[str] = set()
            for start in range(0, len(wanted), _QUERY_SIZE):
                keys = [bytes.fromhex(digest) for digest in wanted[start : start + _QUERY_SIZE]]
                marks = ",".join("?" * len(keys))
                rows = connection.execute(
                    "SELECT hex(digest) FROM vectors WHERE model = "  # noqa: S608 - only marks
                    f"(SELECT id FROM models WHERE name = ?) AND digest IN ({marks})",
                    (model, *keys),
                )
                known.update(digest.lower() for (digest,) in rows)
            return known

        known = self._run(select)
        return [digest for digest in wanted if digest not in known]

    def add(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors with the same dimensions by digest, all or none."""
        if not vectors:
            return
        dimensions = count_dimensions(next(iter(vectors.values())))

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT OR IGNORE INTO models (name, dimensions) VALUES (?, ?)", (model, dimensions)
            )
            model_id, stored = connection.execute(
                "SELECT id, dimensions FROM models WHERE name = ?", (model,)
            ).fetchone()
            if stored != dimensions:
                connection.execute("DELETE FROM vectors WHERE model = ?", (model_id,))
                connection.execute(
                    "UPDATE models SET dimensions = ? WHERE id = ?", (dimensions, model_id)
                )
            connection.executemany(
                "INSERT OR IGNORE INTO vectors (model, digest, data) VALUES (?, ?, ?)",
                [(model_id, bytes.fromhex(digest), data) for digest, data in vectors.items()],
            )
            connection.execute("COMMIT")

        self._run(insert)

    def read(self, model: str, after: int = 0) -> list[StoredVector]:
        """Return the vectors of a model that were added after the position `after`."""
        return self._run(
            lambda connection: [
                StoredVector(position, digest.hex(), data)
                for position, digest, data in connection.execute(
                    # The unary plus keeps SQLite from reading all vectors of the model.
                    "SELECT position, digest, data FROM vectors WHERE position > ? AND +model = "
                    "(SELECT id FROM models WHERE name = ?) ORDER BY position",
                    (after, model),
                )
            ]
        )

    def open_ranking(self, model: str) -> LoadedVectors:
        """Return the vectors of a model for ranking, in memory."""
        return LoadedVectors(model, self)

    def prune(self, model: str, in_use: Collection[str]) -> int:
        """Delete the oldest vectors over the limit that are not in use; return how many."""

        def delete(connection: sqlite3.Connection) -> int:
            ((count,),) = connection.execute("SELECT count(*) FROM vectors")
            if count <= self._max_vectors:
                return 0
            connection.execute("CREATE TEMP TABLE in_use (digest BLOB PRIMARY KEY)")
            connection.executemany(
                "INSERT OR IGNORE INTO in_use VALUES (?)",
                [(bytes.fromhex(digest),) for digest in in_use],
            )
            deleted = connection.execute(
                "DELETE FROM vectors WHERE position IN (SELECT position FROM vectors "
                "JOIN models ON models.id = vectors.model WHERE models.name != ? "
                "OR digest NOT IN (SELECT digest FROM in_use) ORDER BY position LIMIT ?)",
                (model, count - self._max_vectors),
            )
            return deleted.rowcount

        return self._run(delete)

    def clear(self) -> int:
        """Delete all vectors; return how many."""

        def delete(connection: sqlite3.Connection) -> int:
            count = connection.execute("DELETE FROM vectors").rowcount
            connection.execute("DELETE FROM models")
            connection.execute("VACUUM")
            return count

        return self._run(delete)

    def measure(self) -> StoreUsage:
        """Return the size of the store."""
        if not os.path.exists(self.path):
            return StoreUsage(0, 0, {})
        rows = self._run(
            lambda connection: connection.execute(
                "SELECT name, count(position) FROM models LEFT JOIN vectors "
                "ON vectors.model = models.id GROUP BY name ORDER BY name"
            ).fetchall()
        )
        counts = dict(rows)
        with suppress(OSError):
            return StoreUsage(sum(counts.values()), os.path.getsize(self.path), counts)
        return StoreUsage(sum(counts.values()), 0, counts)

    def _run(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run an operation; if the file is damaged, delete it and run the operation again.

        Raises: DatabaseUnavailable, DatabaseFull.
        """
        with self._translate_errors():
            try:
                with closing(self._connect()) as connection:
                    return operation(connection)
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE not in _DAMAGED:
                    raise
            _LOG.warning(
                "%s was damaged and has been recreated; build the embeddings again", self.path
            )
            self._delete_file()
            with closing(self._connect()) as connection:
                return operation(connection)

    def _connect(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self.path), mode=_FOLDER_MODE, exist_ok=True)
        # SQLite would make the file readable for everyone.
        os.close(os.open(self.path, os.O_RDONLY | os.O_CREAT, _FILE_MODE))
        connection = sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT, isolation_level=None)
        try:
            ((version,),) = connection.execute("PRAGMA user_version")
            if version != _FORMAT:
                _create_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _delete_file(self) -> None:
        for suffix in ("", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE == sqlite3.SQLITE_FULL:
                raise DatabaseFull from error
            raise DatabaseUnavailable(f"{self.path}: {error}") from error
        except OSError as error:
            raise DatabaseUnavailable(f"{self.path}: {error.strerror}") from error


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    ((version,),) = connection.execute("PRAGMA user_version")
    if version != _FORMAT:  # otherwise, another process has created the tables
        for table in ("vectors", "models"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        # Positions in a new file are higher than those in any earlier one (no machine stores a
        # vector in a microsecond), so that readers that remember a position find its vectors.
        connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('vectors', ?)",
            (time.time_ns() // 1000,),
        )
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
    connection.execute("COMMIT")
