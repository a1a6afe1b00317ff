"""What an engine answers that finds rows by terms, and the plain one that reads every row.

An engine says which rows match and how well. What else comes first is decided in `search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.search.query import Term

    ScoredRow: TypeAlias = tuple[int, float]  # a row, and how well it matches; more is better

NAME_WEIGHT, DESCRIPTION_WEIGHT, BODY_WEIGHT = (
    10.0,
    5.0,
    1.0,
)  # what a term counts that is found there


class SearchRow(NamedTuple):
    """The folded texts of one skill."""

    name: str
    description: str
    body: str = ""


class RowExclusions(NamedTuple):
    """Rows that do not count: those found already, and hidden ones if so."""

    name_matches: range = range(0)
    already_found: tuple[int, ...] = ()
    exclude_hidden: bool = False


class Matches(Protocol):
    """Rows that match, best first."""

    @property
    def total(self) -> int:
        """How many there are."""

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Some of them."""


class SearchEngine(Protocol):
    """Finds rows by terms; any number of threads may ask at once."""

    def match_all(self, terms: Sequence[Term], exclusions: RowExclusions) -> Matches:
        """The rows that hold all terms."""

    def match_any(
        self, terms: Sequence[Term], not_all_of: Sequence[Term], exclusions: RowExclusions
    ) -> Matches:
        """The rows that hold one of the rarer `terms`, and not all of `but`."""

    def has_unknown_term(self, terms: Sequence[Term]) -> bool:
        """Whether one of the terms is a word in no row; it may still be part of one."""


class MatchList(NamedTuple):
    """Matches that are in memory already."""

    rows: Sequence[ScoredRow]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Some of them."""
        return self.rows[offset : offset + limit]


class UnrankedMatches(NamedTuple):
    """Rows of which none is better than another."""

    rows: Sequence[int]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Some of them."""
        return [(row, 0.0) for row in self.rows[offset : offset + limit]]


class LinearScanEngine:
    """Finds a term wherever its letters stand, by reading every row."""

    def __init__(self, rows: Iterable[SearchRow], hidden: Iterable[int] = ()) -> None:
        # One text for each row, best place first: where a term stands first says what it counts.
        rows = list(rows)
        self._texts = ["\n".join(row) for row in rows]
        self._field_ends = [
            (len(row.name), len(row.name) + 1 + len(row.description)) for row in rows
        ]
        self._hidden = frozenset(hidden)

    def match_all(self, terms: Sequence[Term], exclusions: RowExclusions) -> MatchList:
        """The rows that hold all terms."""
        return self._rank(self._find_rows(terms), terms, exclusions)

    def match_any(
        self, terms: Sequence[Term], not_all_of: Sequence[Term], exclusions: RowExclusions
    ) -> MatchList:
        """The rows that hold one of the `terms`, and not all of `but`."""
        rows = {row for term in terms for row in self._find_rows([term])}
        return self._rank(rows.difference(self._find_rows(not_all_of)), terms, exclusions)

    def has_unknown_term(self, terms: Sequence[Term]) -> bool:
        """No: parts of words are found at once."""
        del terms
        return False

    def _find_rows(self, terms: Sequence[Term]) -> Sequence[int]:
        texts = self._texts
        # Long words are rare: with one of them first, few rows are left for the others.
        first, *others = sorted({term.text for term in terms}, key=len, reverse=True)
        rows = [row for row, text in enumerate(texts) if first in text]
        for part in others:
            rows = [row for row in rows if part in texts[row]]
        return rows

    def _rank(
        self, rows: Iterable[int], terms: Sequence[Term], exclusions: RowExclusions
    ) -> MatchList:
        left_out = {*exclusions.already_found, *(self._hidden if exclusions.exclude_hidden else ())}
        found = [
            (row, sum(self._score(row, term.text) for term in terms))
            for row in rows
            if row not in exclusions.name_matches and row not in left_out
        ]
        return MatchList(sorted(found, key=rank_key))

    def _score(self, row: int, part: str) -> float:
        at = self._texts[row].find(part)
        if at < 0:
            return 0.0
        name, description = self._field_ends[row]
        return NAME_WEIGHT if at < name else DESCRIPTION_WEIGHT if at < description else BODY_WEIGHT


def rank_key(scored: ScoredRow) -> tuple[float, int]:
    """The order of rows: by weight, then as they are numbered."""
    row, weight = scored
    return -weight, row
