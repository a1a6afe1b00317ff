"""The text of one file as the scan sees it: places by line, pieces of bounded length.

A rule names needles, one of which stands in everything it finds. Looking for them costs next to
nothing, so the patterns meet only the few lines that hold one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from skillhall.skill.risks.excerpts import excerpt
from skillhall.skill.risks.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from skillhall.skill.finding import Code

    Finder: TypeAlias = "Callable[[Piece], int | None]"  # where it stands, if it does

MAX_PIECE = 4000  # characters that a pattern meets at once; longer lines come in several pieces
_OVERLAP = 400  # characters before a needle, and of one piece that the next one has again


class Piece(NamedTuple):
    """A line, or a part of a very long one: as written, and in lower case."""

    start: int
    text: str
    lower: str


class Hit(NamedTuple):
    """Something a rule found: what it is, where, and a short piece of it."""

    code: Code
    what: str
    line: int
    excerpt: str


class Rule(NamedTuple):
    """One kind of risky line."""

    code: Code
    what: str  # no ": " in it, which ends it in a message
    needles: tuple[str, ...]  # in lower case
    find: Finder
    markdown_only: bool = False


class Lines:
    """A text with its lines; a command that goes on behind a backslash is one line."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\\\n", "  ")
        # The only character whose lower case is longer than itself.
        self.lower = self.text.replace("\u0130", "I").lower()
        self._breaks: list[int] | None = None
        self._original = text

    def number(self, offset: int) -> int:
        """The line that a place is on, counted from 1 as the file has it."""
        if self._breaks is None:
            self._breaks = [match.start() for match in re.finditer("\n", self._original)]
        return bisect_left(self._breaks, offset) + 1

    def pieces(self, needle: str) -> Iterator[Piece]:
        """The lines with the needle, each once; of a long line every part that has it."""
        at = self.lower.find(needle)
        while at >= 0:
            start, end = self._line(at)
            following = end
            if end - start > MAX_PIECE:
                start = max(start, at - _OVERLAP)
                if end > start + MAX_PIECE:
                    end = start + MAX_PIECE
                    following = end - _OVERLAP
            yield Piece(start, self.text[start:end], self.lower[start:end])
            at = self.lower.find(needle, following)

    def whole_line(self, offset: int) -> tuple[int, str]:
        """The line around a place, or as much of it as a piece holds, and where it starts."""
        start, end = self._line(offset)
        start = max(start, offset - _OVERLAP)
        return start, self.text[start : min(end, start + MAX_PIECE)]

    def _line(self, at: int) -> tuple[int, int]:
        # Not further than a pattern could look: a line of a megabyte would be walked each time.
        start = self.text.rfind("\n", max(0, at - MAX_PIECE), at) + 1 or max(0, at - MAX_PIECE)
        end = self.text.find("\n", at, at + MAX_PIECE + 1)
        return start, end if end >= 0 else min(len(self.text), at + MAX_PIECE + 1)

    def apply(self, rule: Rule) -> Iterator[Hit]:
        """What one rule finds, each place once."""
        tried: set[int] = set()
        places: set[int] = set()
        for needle in rule.needles:
            for piece in self.pieces(needle):
                at = None if piece.start in tried else rule.find(piece)
                tried.add(piece.start)
                if at is not None and (place := piece.start + at) not in places:
                    places.add(place)
                    shown = excerpt(masked(piece.text), at)
                    yield Hit(rule.code, rule.what, self.number(place), shown)


def any_of(*patterns: str) -> Finder:
    """Finds the first of some patterns in the lower case of a piece."""
    compiled = re.compile("|".join(patterns))

    def find(piece: Piece) -> int | None:
        match = compiled.search(piece.lower)
        return None if match is None else match.start()

    return find


def in_order(*patterns: str) -> Finder:
    """Finds patterns that follow one another in the lower case of a piece."""
    steps = [re.compile(pattern) for pattern in patterns]

    def find(piece: Piece) -> int | None:
        first, at = None, 0
        for step in steps:
            match = step.search(piece.lower, at)
            if match is None:
                return None
            first = match.start() if first is None else first
            at = match.end()
        return first

    return find


def all_of(*patterns: str) -> Finder:
    """Finds patterns that stand in one piece, in whatever order; the place is the first one's."""
    finders = [any_of(pattern) for pattern in patterns]

    def find(piece: Piece) -> int | None:
        first = finders[0](piece)
        if first is None or any(finder(piece) is None for finder in finders[1:]):
            return None
        return first

    return find


def either(*finders: Finder) -> Finder:
    """Finds what any of the finders does."""

    def find(piece: Piece) -> int | None:
        return next((at for finder in finders if (at := finder(piece)) is not None), None)

    return find


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for needles that have no space in them."""
    return tuple(text.split())
