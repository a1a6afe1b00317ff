"""What an engine answers that finds rows by terms, and the plain one that reads every row.

An engine says which rows match and how well. What else comes first is decided in `search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.search.query import Term

    Weighed: TypeAlias = tuple[int, float]  # a row, and how well it matches; more is better

NAME, DESCRIPTION, BODY = 10.0, 5.0, 1.0  # what a term counts that is found there


class Row(NamedTuple):
    """The folded texts of one skill."""

    name: str
    description: str
    body: str = ""


class Without(NamedTuple):
    """Rows that do not count: those found already, and hidden ones if so."""

    named: range = range(0)
    found: tuple[int, ...] = ()
    hidden: bool = False


class Matches(Protocol):
    """Rows that match, best first."""

    @property
    def total(self) -> int:
        """How many there are."""

    def page(self, limit: int, offset: int) -> Sequence[Weighed]:
        """Some of them."""


class Engine(Protocol):
    """Finds rows by terms; any number of threads may ask at once."""

    def every(self, terms: Sequence[Term], without: Without) -> Matches:
        """The rows that hold all terms."""

    def some(self, terms: Sequence[Term], but: Sequence[Term], without: Without) -> Matches:
        """The rows that hold one of the rarer `terms`, and not all of `but`."""

    def has_unknown(self, terms: Sequence[Term]) -> bool:
        """Whether one of the terms is a word in no row; it may still be part of one."""


class Listed(NamedTuple):
    """Matches that are in memory already."""

    rows: Sequence[Weighed]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[Weighed]:
        """Some of them."""
        return self.rows[offset : offset + limit]


class InOrder(NamedTuple):
    """Rows of which none is better than another."""

    rows: Sequence[int]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.rows)

    def page(self, limit: int, offset: int) -> Sequence[Weighed]:
        """Some of them."""
        return [(row, 0.0) for row in self.rows[offset : offset + limit]]


class PlainScan:
    """Finds a term wherever its letters stand, by reading every row."""

    def __init__(self, rows: Iterable[Row], hidden: Iterable[int] = ()) -> None:
        # One text for each row, best place first: where a term stands first says what it counts.
        rows = list(rows)
        self._texts = ["\n".join(row) for row in rows]
        self._ends = [(len(row.name), len(row.name) + 1 + len(row.description)) for row in rows]
        self._hidden = frozenset(hidden)

    def every(self, terms: Sequence[Term], without: Without) -> Listed:
        """The rows that hold all terms."""
        return self._weighed(self._holding(terms), terms, without)

    def some(self, terms: Sequence[Term], but: Sequence[Term], without: Without) -> Listed:
        """The rows that hold one of the `terms`, and not all of `but`."""
        rows = {row for term in terms for row in self._holding([term])}
        return self._weighed(rows.difference(self._holding(but)), terms, without)

    def has_unknown(self, terms: Sequence[Term]) -> bool:
        """No: parts of words are found at once."""
        del terms
        return False

    def _holding(self, terms: Sequence[Term]) -> Sequence[int]:
        texts = self._texts
        # Long words are rare: with one of them first, few rows are left for the others.
        first, *others = sorted({term.text for term in terms}, key=len, reverse=True)
        rows = [row for row, text in enumerate(texts) if first in text]
        for part in others:
            rows = [row for row in rows if part in texts[row]]
        return rows

    def _weighed(self, rows: Iterable[int], terms: Sequence[Term], without: Without) -> Listed:
        left_out = {*without.found, *(self._hidden if without.hidden else ())}
        found = [
            (row, sum(self._weight(row, term.text) for term in terms))
            for row in rows
            if row not in without.named and row not in left_out
        ]
        return Listed(sorted(found, key=best_first))

    def _weight(self, row: int, part: str) -> float:
        at = self._texts[row].find(part)
        if at < 0:
            return 0.0
        name, description = self._ends[row]
        return NAME if at < name else DESCRIPTION if at < description else BODY


def best_first(weighed: Weighed) -> tuple[float, int]:
    """The order of rows: by weight, then as they are numbered."""
    row, weight = weighed
    return -weight, row
