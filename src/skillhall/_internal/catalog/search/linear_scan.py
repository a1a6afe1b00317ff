"""Search engine that scans all rows.

An engine returns matching rows with scores. `search_index` decides the order of kinds of matches.
`fts` has the other engine, with the same methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.search.query import Term

    ScoredRow: TypeAlias = tuple[int, float]  # row number and score; a higher score is better

# The score of one match, by field.
NAME_WEIGHT, DESCRIPTION_WEIGHT, BODY_WEIGHT = 10.0, 5.0, 1.0


class SearchRow(NamedTuple):
    """Folded texts of one skill."""

    name: str
    description: str
    body: str = ""


class RowExclusions(NamedTuple):
    """Rows to leave out of a result."""

    name_matches: range = range(0)
    already_found: tuple[int, ...] = ()
    exclude_hidden: bool = False


class MatchList(NamedTuple):
    """Scored matches in memory, best first."""

    rows: Sequence[ScoredRow]

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Return one page of rows."""
        return self.rows[offset : offset + limit]


class UnrankedMatches(NamedTuple):
    """Rows with equal scores."""

    rows: Sequence[int]

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[ScoredRow]:
        """Return one page of rows."""
        return [(row, 0.0) for row in self.rows[offset : offset + limit]]


class LinearScanEngine:
    """Finds terms anywhere in a text, also inside words, by scanning every row."""

    def __init__(self, rows: Iterable[SearchRow], hidden: Iterable[int] = ()) -> None:
        # One text per row, best field first: the first occurrence of a term gives its score.
        rows = list(rows)
        self._texts = ["\n".join(row) for row in rows]
        self._field_ends = [
            (len(row.name), len(row.name) + 1 + len(row.description)) for row in rows
        ]
        self._hidden = frozenset(hidden)

    def match_all(self, terms: Sequence[Term], exclusions: RowExclusions) -> MatchList:
        """Find rows with all terms."""
        return self._rank(self._find_rows(terms), terms, exclusions)

    def match_any(
        self, terms: Sequence[Term], not_all_of: Sequence[Term], exclusions: RowExclusions
    ) -> MatchList:
        """Find rows with any of the `terms`, but not with all of `not_all_of`."""
        rows = {row for term in terms for row in self._find_rows([term])}
        return self._rank(rows.difference(self._find_rows(not_all_of)), terms, exclusions)

    def has_unknown_term(self, terms: Sequence[Term]) -> bool:
        """Return false: this engine finds parts of words anyway."""
        del terms
        return False

    def _find_rows(self, terms: Sequence[Term]) -> Sequence[int]:
        texts = self._texts
        # Long terms are rare, so the longest one leaves few rows for the others.
        longest, *others = sorted({term.text for term in terms}, key=len, reverse=True)
        rows = [row for row, text in enumerate(texts) if longest in text]
        for other in others:
            rows = [row for row in rows if other in texts[row]]
        return rows

    def _rank(
        self, rows: Iterable[int], terms: Sequence[Term], exclusions: RowExclusions
    ) -> MatchList:
        excluded = {*exclusions.already_found, *(self._hidden if exclusions.exclude_hidden else ())}
        scored = [
            (row, sum(self._score(row, term.text) for term in terms))
            for row in rows
            if row not in exclusions.name_matches and row not in excluded
        ]
        return MatchList(sorted(scored, key=rank_key))

    def _score(self, row: int, term: str) -> float:
        index = self._texts[row].find(term)
        if index < 0:
            return 0.0
        name_end, description_end = self._field_ends[row]
        if index < name_end:
            return NAME_WEIGHT
        return DESCRIPTION_WEIGHT if index < description_end else BODY_WEIGHT


def rank_key(scored: ScoredRow) -> tuple[float, int]:
    """Return the sort key of a row: by score, then by number."""
    row, score = scored
    return -score, row
