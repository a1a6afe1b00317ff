"""The text of one file as rules see it: lines, and pieces of limited length.

A rule has triggers: if a text contains none of them, the rule is not applied to it. A rule has
needles: every match contains one of them, so patterns only run on the few lines that contain one.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.invisible_characters import INVISIBLE_CHARACTERS
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.secret_rules import redact_secrets
from skillhall._internal.skill.risks.triggers import Trigger

MAX_EXCERPT_LENGTH = 80  # characters
_LEADING_LENGTH = 16  # characters before the match, in a long line
# Joiners, selectors and blank letters are legitimate in text, but an excerpt must show them.
_INVISIBLE = re.compile(
    f"[{INVISIBLE_CHARACTERS}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]"
)
_WHITE_SPACE = re.compile(r"\s++")


def build_excerpt(text: str, offset: int = 0) -> str:
    """Return one escaped line around `offset`, of at most `MAX_EXCERPT_LENGTH`."""
    if len(text) > MAX_EXCERPT_LENGTH:
        text = text[max(0, offset - _LEADING_LENGTH) : offset + MAX_EXCERPT_LENGTH]
    return truncate(escape_invisible(text))


def escape_invisible(text: str) -> str:
    """Return `text` on one line, with invisible characters escaped."""
    line = _WHITE_SPACE.sub(" ", text).strip()
    line = _INVISIBLE.sub(lambda match: _format_escape(match.group()), line)
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else _format_escape(c) for c in line)


def truncate(text: str, limit: int = MAX_EXCERPT_LENGTH) -> str:
    """Cut `text` at `limit` characters, with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _format_escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


Finder: TypeAlias = "Callable[[Piece], int | None]"  # offset of the match in the piece


# A line break inside a paragraph: the next line starts no list, table, heading or code.
_SOFT_BREAK = LazyPattern(r"\n(?<=[^\s|]\n)(?=[ \t]{0,12}(?![-*+•>|#=]|\d{1,3}[.)]\s|```|~~~)\S)")
_MAX_MATCHES = 20  # matches of one piece that are checked, if the first ones are mentions
MAX_PIECE_LENGTH = 4000  # characters that a pattern searches at once; longer lines are split
_OVERLAP = 400  # characters before a needle, and shared by two pieces of one line
_LETTERS_DIGITS = f"{string.ascii_letters}{string.digits}"
_WORD_CHARACTERS = f"{_LETTERS_DIGITS} \t\n".encode()
_PUNCTUATION = string.punctuation.encode()
_VALUE_CHARACTERS = f"{_LETTERS_DIGITS}+/=_.~!@#%^&*-"
MIN_VALUE_LENGTH = 20  # characters of the shortest secret that is reported
_SHORTEST_VALUE = b"x" * MIN_VALUE_LENGTH
_TO_VALUE_SHAPE = bytes(
    ord("x" if byte in _VALUE_CHARACTERS.encode() else "'" if byte in b"\"'" else " ")
    for byte in range(256)
)


class Piece(NamedTuple):
    """A line, or a part of a very long one, as written and in lowercase."""

    start: int
    text: str
    lower: str


class RuleHit(NamedTuple):
    """A match of a rule: code, description, line and excerpt."""

    code: Code
    description: str
    line: int
    excerpt: str


class RiskRule(NamedTuple):
    """A rule for one kind of risky line."""

    code: Code
    description: str  # without ": ", which separates it from the excerpt
    needles: tuple[str, ...]  # lowercase
    find: Finder
    triggers: tuple[Trigger, ...]  # every text with a match contains one
    is_markdown_only: bool = False


class ScannedText:
    """Text and its lines. A backslash at the end of a line joins it with the next.

    A few passes over the bytes show that most files contain nothing to report. The constructor
    makes them all, since cached properties would take longer than some of them.
    """

    def __init__(self, encoded: bytes, original: bytes | None = None) -> None:
        """Prepare a text in UTF-8; `original` has its bytes before lines were joined."""
        self._line_breaks: list[int] | None = None
        self._original = encoded if original is None else original
        # All characters but ASCII letters, digits and white space, in their order.
        self.marks = encoded.translate(None, _WORD_CHARACTERS)
        if b"\\" in self.marks and b"\\\n" in encoded:
            encoded = encoded.replace(b"\\\n", b"  ")  # of equal length, so that offsets stay
        self.encoded = encoded
        unusual = self.marks.translate(None, _PUNCTUATION)
        # Only its controls and characters outside ASCII, of which most texts have few.
        self.unusual = unusual.decode("utf-8", "surrogatepass") if unusual else ""
        # The bytes, with ASCII letters where `lower` has them. Of all other characters, only these
        # two have an ASCII letter as their lowercase form.
        self.folded_bytes = encoded
        if unusual and ("\u0130" in self.unusual or "\u212a" in self.unusual):
            folded = encoded.replace("\u0130".encode(), b"i").replace("\u212a".encode(), b"k")
            self.folded_bytes = folded
        # The text with `x` for characters of base64 and keys, and `'` for quotes. Empty if it has
        # no run of `MIN_VALUE_LENGTH` such characters.
        shape = encoded.translate(_TO_VALUE_SHAPE)
        self.value_shape = shape if _SHORTEST_VALUE in shape else b""

    @cached_property
    def text(self) -> str:
        """The text. It is decoded for rules only: most files have nothing that they look for."""
        return self.encoded.decode("utf-8", "surrogatepass")

    @cached_property
    def lower(self) -> str:
        """The text in lowercase, of equal length."""
        # "\u0130" is the only character whose lowercase form is longer.
        return self.text.replace("\u0130", "I").lower()

    def join_paragraphs(self) -> ScannedText:
        """Return the text with each paragraph on one line and all offsets unchanged."""
        joined = _SOFT_BREAK.sub(" ", self.text).encode("utf-8", "surrogatepass")
        return ScannedText(joined, self._original)

    def find_line_number(self, offset: int) -> int:
        """Return the line number in the file, counted from 1."""
        if self._line_breaks is None:
            text = self._original.decode("utf-8", "surrogatepass")
            self._line_breaks = [match.start() for match in re.finditer("\n", text)]
        return bisect_left(self._line_breaks, offset) + 1

    def find_pieces(self, needle: str) -> Iterator[Piece]:
        """Yield each line, or part of a long line, that contains the needle."""
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
        """Return start and text of the line at `offset`, cut to the length of a piece."""
        start, end = self._find_line_span(offset)
        start = max(start, offset - _OVERLAP)
        return start, self.text[start : min(end, start + MAX_PIECE_LENGTH)]

    def _find_line_span(self, at: int) -> tuple[int, int]:
        # Search no further than a piece: a line of a megabyte would be searched for each needle.
        earliest = max(0, at - MAX_PIECE_LENGTH)
        start = self.text.rfind("\n", earliest, at) + 1 or earliest
        end = self.text.find("\n", at, at + MAX_PIECE_LENGTH + 1)
        return start, end if end >= 0 else min(len(self.text), at + MAX_PIECE_LENGTH + 1)

    def apply_rule(self, rule: RiskRule, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
        """Yield the hits of a rule; a mention only counts if its piece has no actual use."""
        searched: set[int] = set()
        reported: set[int] = set()
        for needle in rule.needles:
            for piece in self.find_pieces(needle):
                if piece.start in searched:
                    continue
                searched.add(piece.start)
                at, is_mentioned = _find_use_or_mention(rule.find, piece, is_mention)
                if at is not None and at not in reported:
                    reported.add(at)
                    yield self.build_hit(rule, at, piece, is_mention=is_mentioned)

    def build_hit(
        self, rule: RiskRule, at: int, piece: Piece | None = None, *, is_mention: bool
    ) -> RuleHit:
        """Build the hit for a match at `at`, with an excerpt from `piece` or its line.

        A mention has the code `QUOTED_RISK`, whatever the rule.
        """
        start, text = self.read_line(at) if piece is None else (piece.start, piece.text)
        excerpt = build_excerpt(redact_secrets(text), at - start)
        number = self.find_line_number(at)
        if is_mention:
            description = f"{rule.description} (mentioned, not used)"
            return RuleHit(Code.QUOTED_RISK, description, number, excerpt)
        return RuleHit(rule.code, rule.description, number, excerpt)


def _find_use_or_mention(
    find: Finder, piece: Piece, is_mention: Callable[[int], bool]
) -> tuple[int | None, bool]:
    """Return the offset of the first use, else of the first mention, else `None`.

    The second value is false for a use.
    """
    rest, first = piece, None
    for _ in range(_MAX_MATCHES):
        at = find(rest)
        if at is None:
            break
        if not is_mention(rest.start + at):
            return rest.start + at, False
        first = rest.start + at if first is None else first
        rest = Piece(rest.start + at + 1, rest.text[at + 1 :], rest.lower[at + 1 :])
    return first, True


def any_of(*patterns: str) -> Finder:
    """Build a finder for the first match of any pattern, in lowercase text."""
    pattern = LazyPattern("|".join(patterns))

    def find(piece: Piece) -> int | None:
        match = pattern.search(piece.lower)
        return None if match is None else match.start()

    return find


def in_order(*patterns: str) -> Finder:
    """Build a finder for patterns that follow one another, in lowercase text."""
    steps = [LazyPattern(pattern) for pattern in patterns]

    def find(piece: Piece) -> int | None:
        starts, at = [], 0
        for step in steps:
            match = step.search(piece.lower, at)
            if match is None:
                return None
            starts.append(match.start())
            at = match.end()
        # Of several matches of the first step, the last one before the second step counts.
        last, second = starts[:2]
        for match in islice(steps[0].finditer(piece.lower, last, second), _MAX_MATCHES):
            last = match.start()
        return last

    return find


def all_of(*patterns: str) -> Finder:
    """Build a finder for patterns in any order; the match of the first one counts."""
    finders = [any_of(pattern) for pattern in patterns]

    def find(piece: Piece) -> int | None:
        first = finders[0](piece)
        if first is None or any(finder(piece) is None for finder in finders[1:]):
            return None
        return first

    return find


def either(*finders: Finder) -> Finder:
    """Build a finder that returns the first result of several finders."""

    def find(piece: Piece) -> int | None:
        return next((at for finder in finders if (at := finder(piece)) is not None), None)

    return find


def split_words(text: str) -> tuple[str, ...]:
    """Split a list of needles or extensions, written as one string."""
    return tuple(text.split())
