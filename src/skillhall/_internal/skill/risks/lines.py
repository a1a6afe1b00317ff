"""The text of one file as the scan sees it: places by line, pieces of bounded length.

A rule names needles, one of which stands in everything it finds. Looking for them costs next to
nothing, so the patterns meet only the few lines that hold one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.excerpt import build_excerpt
from skillhall._internal.skill.risks.secret_rules import redact_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Finder: TypeAlias = "Callable[[Piece], int | None]"  # where it stands, if it does

# A line break inside of a paragraph: what follows begins no list, table, heading or code.
_SOFT_BREAK = re.compile(r"\n(?<=[^\s|]\n)(?=[ \t]{0,12}(?![-*+•>|#=]|\d{1,3}[.)]\s|```|~~~)\S)")
_TRIES = 20  # places of one piece that are looked at, if the first ones are mentions
MAX_PIECE_LENGTH = (
    4000  # characters that a pattern meets at once; longer lines come in several pieces
)
_OVERLAP = 400  # characters before a needle, and of one piece that the next one has again


class Piece(NamedTuple):
    """A line, or a part of a very long one: as written, and in lower case."""

    start: int
    text: str
    lower: str


class RuleHit(NamedTuple):
    """Something a rule found: what it is, where, and a short piece of it."""

    code: Code
    description: str
    line: int
    excerpt: str


class RuleMatch(NamedTuple):
    """A match of a rule, before it becomes a hit."""

    start: int
    piece: Piece

    @property
    def excerpt(self) -> str:
        """A short piece of the text at that place."""
        return build_excerpt(redact_secrets(self.piece.text), self.start - self.piece.start)


class RiskRule(NamedTuple):
    """One kind of risky line."""

    code: Code
    description: str  # no ": " in it, which ends it in a message
    needles: tuple[str, ...]  # in lower case
    find: Finder
    is_markdown_only: bool = False


class ScannedText:
    """A text with its lines; a command that goes on behind a backslash is one line."""

    def __init__(self, text: str, original: str | None = None) -> None:
        self.text = text.replace("\\\n", "  ")
        # The only character whose lower case is longer than itself.
        self.lower = self.text.replace("\u0130", "I").lower()
        self._line_breaks: list[int] | None = None
        self._original_text = text if original is None else original

    def join_paragraphs(self) -> ScannedText:
        """The same text with each paragraph on one line, and every place where it was."""
        return ScannedText(_SOFT_BREAK.sub(_to_spaces, self.text), self._original_text)

    def find_line_number(self, offset: int) -> int:
        """The line that a place is on, counted from 1 as the file has it."""
        if self._line_breaks is None:
            self._line_breaks = [match.start() for match in re.finditer("\n", self._original_text)]
        return bisect_left(self._line_breaks, offset) + 1

    def find_pieces(self, needle: str) -> Iterator[Piece]:
        """The lines with the needle, each once; of a long line every part that has it."""
        at = self.lower.find(needle)
        while at >= 0:
            start, end = self._find_line_span(at)
            following = end
            if end - start > MAX_PIECE_LENGTH:
                start = max(start, at - _OVERLAP)
                if end > start + MAX_PIECE_LENGTH:
                    end = start + MAX_PIECE_LENGTH
                    following = end - _OVERLAP
            yield Piece(start, self.text[start:end], self.lower[start:end])
            at = self.lower.find(needle, following)

    def read_line(self, offset: int) -> tuple[int, str]:
        """The line around a place, or as much of it as a piece holds, and where it starts."""
        start, end = self._find_line_span(offset)
        start = max(start, offset - _OVERLAP)
        return start, self.text[start : min(end, start + MAX_PIECE_LENGTH)]

    def _find_line_span(self, at: int) -> tuple[int, int]:
        # Not further than a pattern could look: a line of a megabyte would be walked each time.
        start = self.text.rfind("\n", max(0, at - MAX_PIECE_LENGTH), at) + 1 or max(
            0, at - MAX_PIECE_LENGTH
        )
        end = self.text.find("\n", at, at + MAX_PIECE_LENGTH + 1)
        return start, end if end >= 0 else min(len(self.text), at + MAX_PIECE_LENGTH + 1)

    def apply_rule(self, rule: RiskRule, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
        """What one rule finds, each place once; a mention only if its line has nothing graver."""
        tried: set[int] = set()
        places: set[int] = set()
        for needle in rule.needles:
            for piece in self.find_pieces(needle):
                if piece.start in tried:
                    continue
                tried.add(piece.start)
                found = _find_use_or_mention(rule.find, piece, is_mention)
                if found is not None and found[0].start not in places:
                    places.add(found[0].start)
                    yield self.build_hit(rule, found[0], is_mention=found[1])

    def build_hit(self, rule: RiskRule, match: RuleMatch, *, is_mention: bool) -> RuleHit:
        """The hit of a rule at a place."""
        number = self.find_line_number(match.start)
        if is_mention:
            return RuleHit(
                Code.QUOTED_RISK, f"mentioned, not used, {rule.description}", number, match.excerpt
            )
        return RuleHit(rule.code, rule.description, number, match.excerpt)


def _find_use_or_mention(
    find: Finder, piece: Piece, is_mention: Callable[[int], bool]
) -> tuple[RuleMatch, bool] | None:
    """The first place of a piece that is used, else the first that is mentioned."""
    rest, first = piece, None
    for _ in range(_TRIES):
        at = find(rest)
        if at is None:
            break
        found = RuleMatch(rest.start + at, piece)
        if not is_mention(found.start):
            return found, False
        first = first or found
        rest = Piece(rest.start + at + 1, rest.text[at + 1 :], rest.lower[at + 1 :])
    return None if first is None else (first, True)


def _to_spaces(match: re.Match[str]) -> str:
    return " " * len(match.group())


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
        starts, at = [], 0
        for step in steps:
            match = step.search(piece.lower, at)
            if match is None:
                return None
            starts.append(match.start())
            at = match.end()
        return _find_last_start(steps[0], piece.lower, *starts[:2])

    return find


def _find_last_start(step: re.Pattern[str], text: str, first: int, before: int) -> int:
    """Return the last match of the first step before the second step."""
    for match in islice(step.finditer(text, first, before), _TRIES):
        first = match.start()
    return first


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


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, for needles that have no space in them."""
    return tuple(text.split())
