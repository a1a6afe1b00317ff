"""Database of a search index: full-text tables of heads and of complete texts.

Rows are identified by digests: a skill that moves, or an equal copy, is not indexed twice. Rows
that no skill refers to remain until the index is built again, because SQLite before 3.43
cannot delete from a full-text table without the old text.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections import Counter
from contextlib import suppress
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from skillhall._internal.cache import LruCache
from skillhall._internal.catalog.cache_file import is_trusted_file
from skillhall._internal.catalog.search.query import separate_unspaced
from skillhall._internal.catalog.search.sections import number_sections, split_sections
from skillhall.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FORMAT = 4  # increase it if the tables or their content change
MAX_AGE = 30 * 24 * 3600  # seconds; indexes that were unused for longer are deleted
NAME_WORDS, HEAD_STEMS, SECTION_STEMS = "name_words", "head_stems", "section_stems"
_MEMORY = 32 * 1024 * 1024  # bytes of new rows before they are written
_LOCK_TIMEOUT = 2.0  # seconds to wait for another process
_BATCH = 500  # values in one statement; SQLite accepts 999 everywhere
_CACHED_COUNTS = 4096  # limits the memory that the queries of a server can take
_MIN_WASTE = 1000  # unused rows that never cause a rebuild
_LIKE_SYNTAX = re.compile("[%_~]")
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700

# Contentless: the texts are in the skills. No prefix index: it doubles build time and size, and
# prefix queries are fast enough without.
_TABLES = f"""
BEGIN;
PRAGMA user_version = {FORMAT};
CREATE TABLE extent (has_complete_texts INTEGER NOT NULL);  -- no row: they are complete
CREATE TABLE heads (
    id INTEGER PRIMARY KEY, digest BLOB UNIQUE, name TEXT, description TEXT,
    description_key BLOB  -- equal for copies
);
CREATE INDEX heads_by_name ON heads (name);
CREATE INDEX heads_by_description_key ON heads (description_key);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY, digest BLOB UNIQUE,
    copy_key BLOB  -- only if another skill has the same description
);
CREATE TABLE places (
    id INTEGER PRIMARY KEY,  -- makes the indexes smaller than rows without it
    location BLOB UNIQUE, head INTEGER NOT NULL, text INTEGER, signature BLOB NOT NULL,
    embedding TEXT  -- digest of the text for an embedding model, if one is configured
);
CREATE INDEX places_by_head ON places (head);
CREATE INDEX places_by_text ON places (text) WHERE text IS NOT NULL;
CREATE VIRTUAL TABLE name_words USING fts5(
    name, content='', tokenize='unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE head_stems USING fts5(
    name, description, content='', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE section_stems USING fts5(
    text, content='', columnsize=0, detail=none, tokenize='porter unicode61 remove_diacritics 2'
);
COMMIT;
"""


class Place(NamedTuple):
    """The rows of one skill."""

    location: bytes
    head: int
    text: int | None = None  # `None` if the text has not been read yet, or cannot be read
    signature: bytes = b""  # stat signature of the file; empty if it must be read again
    embedding: str | None = None


class HeadRow(NamedTuple):
    """Name and description of a skill, folded."""

    digest: bytes
    name_key: str
    name: str
    description: str
    description_key: bytes


class TextRow(NamedTuple):
    """A SKILL.md."""

    digest: bytes
    copy_key: bytes | None
    content: bytes  # the part that is searched


class IndexDatabase:
    """Tables of one search index, in a file or in memory. Thread-safe.

    Raises `sqlite3.Error` or `OSError` if the file is damaged, locked or not writable, and
    `DatabaseUnavailable` if SQLite has no full-text search.
    """

    def __init__(self, path: str | None = None) -> None:
        """Open or create the database; a file of another version is replaced."""
        self.path = path
        self._lock = RLock()
        self._counts: LruCache[tuple[str, str, int], int] = LruCache(_CACHED_COUNTS)
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            return _create_tables(_connect(":memory:"))
        _prepare_file(self.path)
        connection = _connect(self.path)
        try:
            # The file is a cache: a power failure may damage it, but a killed process does not.
            connection.execute("PRAGMA synchronous = OFF")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == FORMAT:
                return connection
            if not version:
                return _create_tables(connection)
        except BaseException:
            connection.close()
            raise
        connection.close()
        os.unlink(self.path)
        return self._open()

    def close(self) -> None:
        """Close the database. Idempotent."""
        with self._lock:
            self._connection.close()

    def begin(self) -> None:
        """Begin a transaction if there is none.

        Its changes can be searched before the commit.
        """
        with self._lock:
            self._counts = LruCache(_CACHED_COUNTS)
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit the changes."""
        with self._lock:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def read_places(self) -> dict[bytes, Place]:
        """Return the rows of all skills, by location."""
        rows = self._execute("SELECT location, head, text, signature, embedding FROM places")
        return {row[0]: Place(*row) for row in rows}

    def set_places(self, places: Iterable[Place]) -> None:
        """Set the rows of skills."""
        sql = (
            "INSERT OR REPLACE INTO places (location, head, text, signature, embedding) "
            "VALUES (?, ?, ?, ?, ?)"
        )
        self._execute_many(sql, places)

    def set_texts(self, places: Iterable[tuple[int, bytes, str | None, bytes]]) -> None:
        """Set text, signature and embedding digest of skills, given with their locations."""
        sql = "UPDATE places SET text = ?, signature = ?, embedding = ? WHERE location = ?"
        self._execute_many(sql, places)

    def read_embeddings(self) -> Mapping[str, list[bytes]]:
        """Return the locations of skills by the digests of their embedding texts."""
        locations: dict[str, list[bytes]] = {}
        sql = "SELECT embedding, location FROM places WHERE embedding IS NOT NULL"
        for digest, location in self._execute(sql):
            locations.setdefault(digest, []).append(location)
        return locations

    def remove_places(self, locations: Iterable[bytes]) -> None:
        """Remove skills."""
        rows = [(location,) for location in locations]
        self._execute_many("DELETE FROM places WHERE location = ?", rows)

    def add_heads(self, rows: Sequence[HeadRow]) -> Mapping[bytes, int]:
        """Add the heads that are new; return the row id of each given head, by digest."""
        ids, new = self._assign_ids("heads", {row.digest: row for row in rows})
        sql = "INSERT INTO heads VALUES (?, ?, ?, ?, ?)"
        heads = [(i, r.digest, r.name_key, r.description, r.description_key) for i, r in new]
        self._execute_many(sql, heads)
        texts = [(i, separate_unspaced(r.name), separate_unspaced(r.description)) for i, r in new]
        sql = "INSERT INTO head_stems (rowid, name, description) VALUES (?, ?, ?)"
        self._execute_many(sql, texts)
        sql = "INSERT INTO name_words (rowid, name) VALUES (?, ?)"
        self._execute_many(sql, [(number, name) for number, name, _ in texts])
        return ids

    def add_texts(self, rows: Sequence[TextRow]) -> Mapping[bytes, int]:
        """Add the texts that are new; return the row id of each given text, by digest."""
        ids, new = self._assign_ids("texts", {row.digest: row for row in rows})
        sql = "INSERT INTO texts VALUES (?, ?, NULL)"
        self._execute_many(sql, [(number, row.digest) for number, row in new])
        sql = "UPDATE texts SET copy_key = ? WHERE digest = ?"
        self._execute_many(sql, [(r.copy_key, r.digest) for r in rows if r.copy_key is not None])
        sql = "INSERT INTO section_stems (rowid, text) VALUES (?, ?)"
        sections = (number_sections(number, split_sections(row.content)) for number, row in new)
        self._execute_many(sql, chain.from_iterable(sections))
        return ids

    def find_copies(self, description_keys: Iterable[bytes]) -> list[bytes]:
        """Return skills without a copy key that share a description with another skill."""
        sql = (
            "SELECT description_key, location, copy_key FROM heads "
            "JOIN places ON places.head = heads.id LEFT JOIN texts ON texts.id = places.text "
            "WHERE description_key IN ({})"
        )
        keys = [*description_keys]
        if len(keys) > _BATCH:  # most keys, so one pass over all is faster
            condition = "SELECT description_key FROM heads JOIN places ON places.head = heads.id "
            condition += "GROUP BY description_key HAVING count(*) > 1"
            rows = self._execute(sql.format(condition))
        else:
            rows = [*self._execute_in_parts(sql, keys)]
        counts = Counter(row[0] for row in rows)
        return [location for key, location, known in rows if counts[key] > 1 and known is None]

    def _assign_ids(
        self, table: str, rows: Mapping[bytes, Any]
    ) -> tuple[Mapping[bytes, int], list[tuple[int, Any]]]:
        sql = f"SELECT coalesce(max(id), 0) FROM {table}"  # noqa: S608 - constants
        first = self._execute(sql)[0][0] + 1
        sql = f"SELECT digest, id FROM {table} WHERE digest IN ({{}})"  # noqa: S608 - constants
        known = self._execute_in_parts(sql, [*rows]) if first > 1 else ()
        ids: dict[bytes, int] = dict(known)
        new = [*enumerate((row for digest, row in rows.items() if digest not in ids), first)]
        ids.update((row.digest, number) for number, row in new)
        return ids, new

    def is_wasteful(self) -> bool:
        """Whether more than half of the rows are not used by any skill."""
        for table, column in (("heads", "head"), ("texts", "text")):
            total, used = self._execute(
                f"SELECT (SELECT count(*) FROM {table}), "  # noqa: S608 - constants
                f"(SELECT count(DISTINCT {column}) FROM places)"
            )[0]
            if total > 2 * used + _MIN_WASTE:
                return True
        return False

    def read_extent(self) -> bool:
        """Return whether complete texts are indexed, instead of shortened ones."""
        rows = self._execute("SELECT has_complete_texts FROM extent")
        return not rows or bool(rows[0][0])

    def clear(self, *, has_complete_texts: bool) -> None:
        """Remove all rows; complete or shortened texts are added from now on."""
        with self._lock:
            self._connection.close()
            if self.path is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self.path)
            self._counts = LruCache(_CACHED_COUNTS)
            self._connection = self._open()
            self._execute("INSERT INTO extent VALUES (?)", (has_complete_texts,))

    def count_matches(self, table: str, expression: str, limit: int) -> int:
        """Return the number of rows that match, or `limit` if there are at least as many."""
        key = (table, expression, limit)
        if (known := self._counts.get(key)) is None:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"  # noqa: S608 - constants
            rows = self._match(sql, (expression, limit))
            known = int(rows[0][0]) if rows else 0
            self._counts.put(key, known)
        return known

    def count_words(self, table: str, words: Iterable[str]) -> dict[str, int]:
        """Return the words that occur in the table, in any form, with their row counts."""
        # Not by `count_matches`: there are hundreds of words, and almost none of them exists.
        sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - constants
        counts = {word: self._execute(sql, (f'"{word}"',))[0][0] for word in words}
        return {word: count for word, count in counts.items() if count}

    def count_heads(self) -> int:
        """Return the number of heads."""
        count: int = self._execute("SELECT coalesce(max(id), 0) FROM heads")[0][0]
        return count

    def rank_heads(self, table: str, expression: str, limit: int) -> list[tuple[int, float]]:
        """Return the best heads and their scores, best first."""
        sql = (
            f"SELECT rowid, -bm25({table}) AS score FROM {table} "  # noqa: S608 - constants
            f"WHERE {table} MATCH ? ORDER BY score DESC LIMIT ?"
        )
        return self._execute(sql, (expression, limit))

    def find_sections(self, expression: str) -> list[int]:
        """Return the rows of the sections that match."""
        sql = "SELECT rowid FROM section_stems WHERE section_stems MATCH ?"
        return [row for (row,) in self._match(sql, (expression,))]

    def find_heads(self, name_key: str) -> list[int]:
        """Return the heads whose name has exactly these words."""
        rows = self._execute("SELECT id FROM heads WHERE name = ?", (name_key,))
        return [row[0] for row in rows]

    def find_heads_with_prefix(self, prefix: str, limit: int) -> list[int]:
        """Return heads whose names start with these words; the last may be incomplete."""
        sql = "SELECT id FROM heads WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
        return [row[0] for row in self._execute(sql, (prefix, f"{prefix}\U0010ffff", limit))]

    def find_heads_with_parts(self, parts: Sequence[str], limit: int) -> list[int]:
        """Return heads that contain all parts, also inside words; names come first."""
        # LIKE is twice as fast as instr, but not exact for unusual characters.
        like = "(description LIKE ? ESCAPE '~' OR name LIKE ? ESCAPE '~')"
        in_head = " AND ".join(
            [f"{like} AND instr(name || char(10) || description, ?)"] * len(parts)
        )
        in_name = " AND ".join(["instr(name, ?)"] * len(parts))
        patterns = ["%" + _LIKE_SYNTAX.sub(r"~\g<0>", part) + "%" for part in parts]
        values = chain.from_iterable(zip(patterns, patterns, parts, strict=True))
        sql = f"SELECT id FROM heads WHERE {in_head} ORDER BY ({in_name}) DESC, name LIMIT ?"  # noqa: S608 - constants
        return [row[0] for row in self._execute(sql, (*values, *parts, limit))]

    def read_name_keys(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Return the name keys of these heads, by row."""
        sql = "SELECT id, name FROM heads WHERE id IN ({})"
        return dict(self._execute_in_parts(sql, rows))

    def read_heads(self, locations: Sequence[bytes]) -> Mapping[bytes, tuple[str, str]]:
        """Return the name key and the description of each of these skills, by location."""
        sql = (
            "SELECT location, name, description FROM places JOIN heads ON heads.id = places.head "
            "WHERE location IN ({})"
        )
        rows = self._execute_in_parts(sql, locations)
        return {location: (name, description) for location, name, description in rows}

    def read_names(self) -> list[str]:
        """Return the keys of all names."""
        return [row[0] for row in self._execute("SELECT name FROM heads")]

    def locate(self, column: str, rows: Sequence[int]) -> Mapping[int, list[bytes]]:
        """Return the locations of the skills that use these heads or texts."""
        locations: dict[int, list[bytes]] = {}
        sql = f"SELECT {column}, location FROM places WHERE {column} IN ({{}})"  # noqa: S608 - constants
        for row, location in self._execute_in_parts(sql, rows):
            locations.setdefault(row, []).append(location)
        return locations

    def read_copy_keys(self, locations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the copy keys of the skills that have one."""
        sql = (
            "SELECT location, copy_key FROM places JOIN texts ON texts.id = places.text "
            "WHERE copy_key IS NOT NULL AND location IN ({})"
        )
        return dict(self._execute_in_parts(sql, locations))

    def _execute_in_parts(self, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        """Execute a statement with a list of values, in batches that SQLite accepts."""
        for start in range(0, len(values), _BATCH):
            part = values[start : start + _BATCH]
            yield from self._execute(sql.format(", ".join("?" * len(part))), tuple(part))

    def _match(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Execute a search. A term that the tokenizer splits has no matches in sections."""
        try:
            return self._execute(sql, values)
        except sqlite3.OperationalError as error:
            # SQLite does not know the newest letters of Unicode and treats them as spaces.
            if "phrase queries are not supported" not in str(error):
                raise
            return []

    def _execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _execute_many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._lock:
            self._connection.executemany(sql, rows)


def _connect(path: str) -> sqlite3.Connection:
    # One connection behind a lock: connections with a shared cache would also block each other.
    return sqlite3.connect(
        path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )


def _create_tables(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.executescript(_TABLES)
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        problem = (
            "the SQLite library of this Python lacks full-text search (FTS5), which search needs"
        )
        raise DatabaseUnavailable(problem, "use another build of Python") from None
    for table in (NAME_WORDS, HEAD_STEMS, SECTION_STEMS):
        sql = f"INSERT INTO {table} ({table}, rank) VALUES ('hashsize', ?)"  # noqa: S608 - constants
        connection.execute(sql, (_MEMORY,))
    return connection


def _prepare_file(path: str) -> None:
    """Create the file for this user only, or check that no one else can write it.

    Raises: OSError.
    """
    folder = os.path.dirname(path)
    os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _FILE_MODE))
    except FileExistsError:
        if not is_trusted_file(os.lstat(path)):
            raise PermissionError(f"other users can write to {path}") from None
        with suppress(OSError):
            os.utime(path)  # it is in use
    else:
        _remove_unused_files(folder)


def _remove_unused_files(folder: str) -> None:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > MAX_AGE:
                os.unlink(entry.path)
