"""The full-text index of SQLite, in memory: finds rows by the stems of words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.linear_scan import (
    BODY_WEIGHT,
    DESCRIPTION_WEIGHT,
    NAME_WEIGHT,
    MatchList,
)
from skillhall._internal.catalog.search.query import separate_unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.catalog.search.linear_scan import (
        Matches,
        RowExclusions,
        ScoredRow,
        SearchRow,
    )
    from skillhall._internal.catalog.search.query import Term

_COMMON_TERM_DIVISOR = 20  # a term in more than one of so many rows is common
_CHEAP_ROW_COUNT = 1000  # up to that many rows are cheap to rank, however common the term

# Contentless: the texts are in the catalog already. No prefix index: it doubles the time to build
# and the memory, and the beginnings of words are found as fast without.
_TABLE = (
    "CREATE VIRTUAL TABLE skills USING fts5(name, description, body, content='', "
    "tokenize='porter unicode61 remove_diacritics 2')"
)
_INSERT = "INSERT INTO skills (rowid, name, description, body) VALUES (?, ?, ?, ?)"
_COUNT = "SELECT count(*), 0.0 FROM skills WHERE skills MATCH ?"
_COUNT_UP_TO = "SELECT count(*), 0.0 FROM (SELECT 1 FROM skills WHERE skills MATCH ? LIMIT ?)"
_SELECT_RANKED = (
    "SELECT rowid, "  # noqa: S608 - three numbers of ours
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
    """An index over rows of texts, which never changes."""

    def __init__(self, rows: Iterable[SearchRow], hidden: Iterable[int] = ()) -> None:
        # One connection behind a lock: connections to one shared cache wait for each other, too.
        self._lock = Lock()
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._database.execute(_TABLE)
        self._database.execute("CREATE TABLE hidden (id INTEGER PRIMARY KEY)")
        self._database.execute("BEGIN")
        self._row_count = self._database.executemany(_INSERT, _number_rows(rows)).rowcount
        self._database.executemany("INSERT INTO hidden VALUES (?)", ((row,) for row in hidden))
        self._database.execute("COMMIT")

    def match_all(self, terms: Sequence[Term], exclusions: RowExclusions) -> Matches:
        """The rows that hold all terms."""
        return _FtsMatches.from_expression(self, _format_all(terms), exclusions)

    def match_any(
        self, terms: Sequence[Term], not_all_of: Sequence[Term], exclusions: RowExclusions
    ) -> Matches:
        """The rows that hold one of the rarer `terms`, and not all of `but`."""
        limit = max(_CHEAP_ROW_COUNT, self._row_count // _COMMON_TERM_DIVISOR)
        counts = {term: self._count_up_to(limit + 1, term) for term in terms}
        known = [term for term in terms if counts[term]]
        chosen = [term for term in known if counts[term] <= limit] or known
        if not chosen:
            return MatchList(())
        any_of = " OR ".join(map(_format_term, chosen))
        return _FtsMatches.from_expression(
            self, f"({any_of}) NOT ({_format_all(not_all_of)})", exclusions
        )

    def has_unknown_term(self, terms: Sequence[Term]) -> bool:
        """Whether one of the terms is a word in no row; it may still be part of one."""
        return any(not self._count_up_to(1, term) for term in terms)

    def _count_up_to(self, limit: int, term: Term) -> int:
        return self.execute(_COUNT_UP_TO, (_format_term(term), limit))[0][0]

    def execute(self, sql: str, values: tuple[str | int, ...]) -> list[ScoredRow]:
        """What a statement gives; any thread may ask."""
        with self._lock:
            return self._database.execute(sql, values).fetchall()


class _FtsMatches(NamedTuple):
    """The rows that an expression matches."""

    table: FtsEngine
    where: str
    values: tuple[str | int, ...]

    @classmethod
    def from_expression(
        cls, table: FtsEngine, expression: str, exclusions: RowExclusions
    ) -> _FtsMatches:
        """The rows that `expression` matches, but for some."""
        named, found, hidden = exclusions
        where = _EXCLUDE_NAME_MATCHES if named else ""
        if found:
            where += f" AND rowid NOT IN ({', '.join('?' * len(found))})"
        if hidden:
            where += _EXCLUDE_HIDDEN
        ends = (named[0], named[-1]) if named else ()
        return cls(table, where, (expression, *ends, *found))

    @property
    def total(self) -> int:
        """How many there are."""
        return self.table.execute(_COUNT + self.where, self.values)[0][0]

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Some of them."""
        sql = _SELECT_RANKED + self.where + _ORDER_BY_WEIGHT
        return self.table.execute(sql, (*self.values, limit, offset))


def _number_rows(rows: Iterable[SearchRow]) -> Iterator[tuple[int, str, str, str]]:
    for number, (name, description, body) in enumerate(rows):
        yield (
            number,
            separate_unspaced(name),
            separate_unspaced(description),
            separate_unspaced(body),
        )


def _format_all(terms: Sequence[Term]) -> str:
    return " AND ".join(map(_format_term, terms))


def _format_term(term: Term) -> str:
    """A term in the language of the index; quotes keep whatever is in it from being syntax."""
    quoted = f'"{separate_unspaced(term.text).strip()}"'
    # The word itself counts on top of the words that it begins: java before javascript.
    return f"({quoted} OR {quoted} *)" if term.is_prefix else quoted
