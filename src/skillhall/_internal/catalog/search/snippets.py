"""A short excerpt of a text that was found, and where in it the words stand that were looked for.

Plain text and offsets: how a word is shown as found, each surface decides.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import is_normalized

from skillhall._internal.catalog.search.query import ACCENTS, Query, fold, loosened
from skillhall._internal.skill.invisible import FLAG, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH = 160  # characters of an excerpt, the dots not counted
_BEFORE = 50  # characters that lead up to the first word found
_LOOKED_AT = 64 * 1024  # characters of a text; what was found further down is not shown
_MOST_MARKS = 20
_DOTS = "…"

_WORD = re.compile(rf"(?:[^\W_]|[{ACCENTS}])+")
_UNSHOWN = re.compile(rf"({FLAG})|[\s{UNSEEN}]+")
# The index compares stems. This is near enough to show which word was meant.
_ENDING = re.compile(r"(?:ations?|ions?|ings?|ers?|ed|es|s|e|y|ly|able)$")
_SHORTEST_STEM = 3


class Excerpt(NamedTuple):
    """Some words of a text on one line, and the offsets of those that were looked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class Excerpts:
    """Makes the excerpts for one query."""

    def __init__(self, query: Query, *, inside_words: bool = False) -> None:
        terms = query.terms
        parts = [t.text for t in (*terms, *loosened(terms)) if inside_words or t.is_unspaced]
        stems = [_stem(term.text) for term in terms if not term.is_unspaced]
        self._wanted = _any_of(stems, parts if terms else [query.needle])

    def of(self, text: str) -> Excerpt:
        """The excerpt round the first word found; the beginning of the text if there is none."""
        looked_at = text[:_LOOKED_AT]
        first = next(self._found(looked_at), None)
        start = max(0, first[0] - _BEFORE) if first and first[1] > LENGTH else 0
        if start:
            start = _next_word(looked_at, start, first[0]) if first else 0
        shown = _UNSHOWN.sub(_shown, looked_at[start : start + 2 * LENGTH]).strip()
        is_cut = len(shown) > LENGTH or start + 2 * LENGTH < len(text)
        shown = _cut(shown) if is_cut else shown
        before, after = _DOTS if start else "", _DOTS if is_cut else ""
        return Excerpt(f"{before}{shown}{after}", self._marks(shown, len(before)))

    def _marks(self, text: str, shift: int) -> tuple[tuple[int, int], ...]:
        found = islice(self._found(text), _MOST_MARKS)
        return tuple((start + shift, end + shift) for start, end in found)

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        folded = fold(text)
        if len(folded) == len(text) and is_normalized("NFC", text):
            yield from (match.span() for match in self._wanted.finditer(folded))
            return
        # Folding moved the letters, so a word is marked as a whole.
        for word in _WORD.finditer(text):
            if self._wanted.search(fold(word[0])):
                yield word.span()


def _shown(match: re.Match[str]) -> str:
    flag: str | None = match[1]
    return flag or " "


def _any_of(stems: list[str], parts: list[str]) -> re.Pattern[str]:
    """Whole words that begin with a stem, and parts wherever they stand."""
    words = rf"(?<![^\W_])(?:{'|'.join(map(re.escape, stems))})[^\W_]*" if stems else ""
    return re.compile("|".join([*([words] if words else []), *map(re.escape, parts)]) or r"(?!)")


def _cut(text: str) -> str:
    """At most `LENGTH` characters, and whole words where there are blanks."""
    whole = text[: LENGTH + 1].rpartition(" ")[0]
    return whole.rstrip() if len(whole) > LENGTH // 2 else text[:LENGTH]


def _next_word(text: str, start: int, end: int) -> int:
    blank = text.find(" ", start, end)
    return start if blank < 0 else blank + 1


def _stem(word: str) -> str:
    stem = _ENDING.sub("", word)
    return stem if len(stem) >= _SHORTEST_STEM else word
