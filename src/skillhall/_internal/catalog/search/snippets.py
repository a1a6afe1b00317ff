"""A short excerpt of a text that was found, and where in it the words stand that were looked for.

Plain text and offsets: how a word is shown as found, each surface decides.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import is_normalized

from skillhall._internal.catalog.search.query import ACCENTS, Query, fold_text, loosen_terms
from skillhall._internal.skill.invisible import EMOJI_FLAG, INVISIBLE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LENGTH = 160  # characters of an excerpt, the dots not counted
_CONTEXT_LENGTH = 50  # characters that lead up to the first word found
_MAX_SCANNED = 64 * 1024  # characters of a text; what was found further down is not shown
_MAX_MARKS = 20
_ELLIPSIS = "…"

_WORD = re.compile(rf"(?:[^\W_]|[{ACCENTS}])+")
_WHITESPACE_OR_INVISIBLE = re.compile(rf"({EMOJI_FLAG})|[\s{INVISIBLE_CHARACTERS}]+")
# The index compares stems. This is near enough to show which word was meant.
_SUFFIX = re.compile(r"(?:ations?|ions?|ings?|ers?|ed|es|s|e|y|ly|able)$")
_MIN_STEM_LENGTH = 3


class Snippet(NamedTuple):
    """Some words of a text on one line, and the offsets of those that were looked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class SnippetBuilder:
    """Makes the excerpts for one query."""

    def __init__(self, query: Query, *, inside_words: bool = False) -> None:
        terms = query.terms
        parts = [t.text for t in (*terms, *loosen_terms(terms)) if inside_words or t.is_unspaced]
        stems = [_stem(term.text) for term in terms if not term.is_unspaced]
        self._pattern = _compile_pattern(stems, parts if terms else [query.folded_text])

    def build(self, text: str) -> Snippet:
        """The excerpt round the first word found; the beginning of the text if there is none."""
        looked_at = text[:_MAX_SCANNED]
        first = next(self._find_matches(looked_at), None)
        start = max(0, first[0] - _CONTEXT_LENGTH) if first and first[1] > MAX_LENGTH else 0
        if start:
            start = _find_word_start(looked_at, start, first[0]) if first else 0
        shown = _WHITESPACE_OR_INVISIBLE.sub(
            _replace_invisible, looked_at[start : start + 2 * MAX_LENGTH]
        ).strip()
        is_cut = len(shown) > MAX_LENGTH or start + 2 * MAX_LENGTH < len(text)
        shown = _truncate(shown) if is_cut else shown
        before, after = _ELLIPSIS if start else "", _ELLIPSIS if is_cut else ""
        return Snippet(f"{before}{shown}{after}", self._find_marks(shown, len(before)))

    def _find_marks(self, text: str, shift: int) -> tuple[tuple[int, int], ...]:
        found = islice(self._find_matches(text), _MAX_MARKS)
        return tuple((start + shift, end + shift) for start, end in found)

    def _find_matches(self, text: str) -> Iterator[tuple[int, int]]:
        folded = fold_text(text)
        if len(folded) == len(text) and is_normalized("NFC", text):
            yield from (match.span() for match in self._pattern.finditer(folded))
            return
        # Folding moved the letters, so a word is marked as a whole.
        for word in _WORD.finditer(text):
            if self._pattern.search(fold_text(word[0])):
                yield word.span()


def _replace_invisible(match: re.Match[str]) -> str:
    flag: str | None = match[1]
    return flag or " "


def _compile_pattern(stems: list[str], parts: list[str]) -> re.Pattern[str]:
    """Whole words that begin with a stem, and parts wherever they stand."""
    words = rf"(?<![^\W_])(?:{'|'.join(map(re.escape, stems))})[^\W_]*" if stems else ""
    return re.compile("|".join([*([words] if words else []), *map(re.escape, parts)]) or r"(?!)")


def _truncate(text: str) -> str:
    """At most `LENGTH` characters, and whole words where there are blanks."""
    whole = text[: MAX_LENGTH + 1].rpartition(" ")[0]
    return whole.rstrip() if len(whole) > MAX_LENGTH // 2 else text[:MAX_LENGTH]


def _find_word_start(text: str, start: int, end: int) -> int:
    blank = text.find(" ", start, end)
    return start if blank < 0 else blank + 1


def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word)
    return stem if len(stem) >= _MIN_STEM_LENGTH else word
