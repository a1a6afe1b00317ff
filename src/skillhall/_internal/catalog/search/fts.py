"""Search engine on an in-memory SQLite full-text index; matches word stems."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING

from skillhall._internal.catalog.search.linear_scan import (
    BODY_WEIGHT,
    DESCRIPTION_WEIGHT,
    NAME_WEIGHT,
    MatchList,
)
from skillhall._internal.catalog.search.query import separate_unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.catalog.search.linear_scan import RowExclusions, ScoredRow, SearchRow
    from skillhall._internal.catalog.search.query import Term

_COMMON_TERM_DIVISOR = 20  # a term is common if more than 1/20 of all rows contain it
_CHEAP_ROW_COUNT = 1000  # up to this many rows are cheap to rank, however common the term

# Contentless: the texts are already in the catalog. No prefix index: it doubles build time and
# memory, and prefix queries are as fast without.
_TABLE = (
    "CREATE VIRTUAL TABLE skills USING fts5(name, description, body, content='', "
    "tokenize='porter unicode61 remove_diacritics 2')"
)
_INSERT = "INSERT INTO skills (rowid, name, description, body) VALUES (?, ?, ?, ?)"
_COUNT = "SELECT count(*), 0.0 FROM skills WHERE skills MATCH ?"
_COUNT_UP_TO = "SELECT count(*), 0.0 FROM (SELECT 1 FROM skills WHERE skills MATCH ? LIMIT ?)"
_SELECT_RANKED = (
    "SELECT rowid, "  # noqa: S608 - only our own constants
    f"-bm25(skills, {NAME_WEIGHT}, {DESCRIPTION_WEIGHT}, {BODY_WEIGHT}) AS weight "
    "FROM skills WHERE skills MATCH ?"
)
_ORDER_BY_WEIGHT = " ORDER BY weight DESC, rowid LIMIT ? OFFSET ?"
_EXCLUDE_NAME_MATCHES = " AND rowid NOT BETWEEN ? AND ?"
_EXCLUDE_HIDDEN = " AND rowid NOT IN (SELECT id FROM hidden)"


def is_available() -> bool:
    """Whether the SQLite of this interpreter was built with full-text search."""
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute(_TABLE)
        except sqlite3.OperationalError:
            return False
    return True


class FtsEngine:
    """Immutable full-text index."""

    def __init__(self, rows: Iterable[SearchRow], hidden: Iterable[int] = ()) -> None:
        # One connection behind a lock: connections with a shared cache would also block each other.
        self._lock = Lock()
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._database.execute(_TABLE)
        self._database.execute("CREATE TABLE hidden (id INTEGER PRIMARY KEY)")
        self._database.execute("BEGIN")
        values = ((number, *map(separate_unspaced, row)) for number, row in enumerate(rows))
        self._row_count = self._database.executemany(_INSERT, values).rowcount
        self._database.executemany("INSERT INTO hidden VALUES (?)", ((row,) for row in hidden))
        self._database.execute("COMMIT")

    def match_all(self, terms: Sequence[Term], exclusions: RowExclusions) -> FtsMatches:
        """Find rows with all terms."""
        return FtsMatches(self, _format_all(terms), exclusions)

    def match_any(
        self, terms: Sequence[Term], not_all_of: Sequence[Term], exclusions: RowExclusions
    ) -> FtsMatches | MatchList:
        """Find rows with any of the rarer `terms`, but not with all of `not_all_of`."""
        limit = max(_CHEAP_ROW_COUNT, self._row_count // _COMMON_TERM_DIVISOR)
        counts = {term: self._count_up_to(limit + 1, term) for term in terms}
        known = [term for term in terms if counts[term]]
        rare = [term for term in known if counts[term] <= limit] or known
        if not rare:
            return MatchList(())
        any_of = " OR ".join(map(_format_term, rare))
        expression = f"({any_of}) NOT ({_format_all(not_all_of)})"
        return FtsMatches(self, expression, exclusions)

    def has_unknown_term(self, terms: Sequence[Term]) -> bool:
        """Whether a term is not a word of any row; it may still be a part of one."""
        return any(not self._count_up_to(1, term) for term in terms)

    def _count_up_to(self, limit: int, term: Term) -> int:
        return self.execute(_COUNT_UP_TO, (_format_term(term), limit))[0][0]

    def execute(self, sql: str, values: tuple[str | int, ...]) -> list[ScoredRow]:
        """Execute a statement; thread-safe."""
        with self._lock:
            return self._database.execute(sql, values).fetchall()


class FtsMatches:
    """Rows that an FTS expression matches, best first."""

    def __init__(self, engine: FtsEngine, expression: str, exclusions: RowExclusions) -> None:
        name_matches, already_found, exclude_hidden = exclusions
        where = _EXCLUDE_NAME_MATCHES if name_matches else ""
        if already_found:
            where += f" AND rowid NOT IN ({', '.join('?' * len(already_found))})"
        if exclude_hidden:
            where += _EXCLUDE_HIDDEN
        bounds = (name_matches[0], name_matches[-1]) if name_matches else ()
        self._engine = engine
        self._where = where
        self._values = (expression, *bounds, *already_found)
        self.total = engine.execute(_COUNT + where, self._values)[0][0]

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Return one page of rows."""
        sql = _SELECT_RANKED + self._where + _ORDER_BY_WEIGHT
        return self._engine.execute(sql, (*self._values, limit, offset))


def _format_all(terms: Sequence[Term]) -> str:
    return " AND ".join(map(_format_term, terms))


def _format_term(term: Term) -> str:
    # Quoted, so that no part of a term is parsed as query syntax.
    quoted = f'"{separate_unspaced(term.text).strip()}"'
    # The exact word is matched twice, which ranks "java" before "javascript".
    return f"({quoted} OR {quoted} *)" if term.is_prefix else quoted
