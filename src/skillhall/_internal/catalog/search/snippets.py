"""Snippets: short excerpts with the offsets of matches.

Each surface decides how to highlight the matches.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import is_normalized

from skillhall._internal.catalog.search.query import (
    ACCENTS,
    Query,
    fold_text,
    loosen_terms,
    stem_word,
)
from skillhall._internal.catalog.search.spelling import list_variants
from skillhall._internal.skill.invisible_characters import EMOJI_FLAG, INVISIBLE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LENGTH = 160  # characters, without the ellipses
_CONTEXT_LENGTH = 50  # characters before the first match
_MAX_SCANNED = 64 * 1024  # characters; later matches are not shown
_MAX_MARKS = 20
_ELLIPSIS = "…"
_MIN_LENGTH_WITH_FORMS = 5  # shorter spellings, such as `pr`, are parts of many words

_WORD = re.compile(rf"(?:[^\W_]|[{ACCENTS}])+")
# Not a single space, which would be replaced by itself.
_WHITESPACE_OR_INVISIBLE = re.compile(
    rf"({EMOJI_FLAG})|[\s{INVISIBLE_CHARACTERS}]{{2,}}|[^\S ]|[{INVISIBLE_CHARACTERS}]"
)


class Snippet(NamedTuple):
    """Excerpt on one line, with the offsets of matches."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def _has_forms(word: str) -> bool:
    return len(word) >= _MIN_LENGTH_WITH_FORMS


class SnippetBuilder:
    """Builds the snippets for one query."""

    def __init__(self, query: Query, *, inside_words: bool = False) -> None:
        terms = query.terms
        parts = [t.text for t in (*terms, *loosen_terms(terms)) if inside_words or t.is_unspaced]
        if not terms:
            parts = [query.folded_text]
        others = [*chain.from_iterable(list_variants(terms))] if query.is_short else []
        words = [term.text for term in terms if not term.is_unspaced]
        stems = dict.fromkeys(map(stem_word, [*words, *filter(_has_forms, others)]))
        choices = [rf"{re.escape(stem)}[^\W_]*" for stem in stems]
        choices += [rf"{re.escape(one)}(?![^\W_])" for one in dict.fromkeys(others)]
        starts = [rf"(?<![^\W_])(?:{'|'.join(choices)})"] if choices else []
        choices = [*starts, *map(re.escape, parts)]
        self._pattern = re.compile("|".join(choices) or r"(?!)")

    def build(self, text: str) -> Snippet:
        """Build the snippet around the first match, or at the start if there is none."""
        scanned = text[:_MAX_SCANNED]
        first = next(self._find_matches(scanned), None)
        start = max(0, first[0] - _CONTEXT_LENGTH) if first and first[1] > MAX_LENGTH else 0
        if first and start:
            start = max(start, scanned.find(" ", start, first[0]) + 1)  # the start of a word
        # Twice the length, because collapsing whitespace shortens the excerpt.
        excerpt = scanned[start : start + 2 * MAX_LENGTH]
        excerpt = _WHITESPACE_OR_INVISIBLE.sub(lambda match: match[1] or " ", excerpt).strip()
        is_cut = len(excerpt) > MAX_LENGTH or start + 2 * MAX_LENGTH < len(text)
        if is_cut:
            words = excerpt[: MAX_LENGTH + 1].rpartition(" ")[0]
            # Without a late space, as in Chinese, the text is cut anywhere.
            is_late = len(words) > MAX_LENGTH // 2
            excerpt = words.rstrip() if is_late else excerpt[:MAX_LENGTH]
        before, after = _ELLIPSIS if start else "", _ELLIPSIS if is_cut else ""
        shift, matches = len(before), islice(self._find_matches(excerpt), _MAX_MARKS)
        marks = tuple((first + shift, last + shift) for first, last in matches)
        return Snippet(f"{before}{excerpt}{after}", marks)

    def find_words(self, text: str) -> list[str]:
        """Return the different words that match, as written and in order."""
        scanned = text[:_MAX_SCANNED]
        words = {
            fold_text(scanned[start:end]): scanned[start:end]
            for start, end in self._find_matches(scanned)
        }
        return [*words.values()][:_MAX_MARKS]

    def _find_matches(self, text: str) -> Iterator[tuple[int, int]]:
        folded = fold_text(text)
        if len(folded) == len(text) and is_normalized("NFC", text):
            yield from (match.span() for match in self._pattern.finditer(folded))
            return
        # Folding changed the offsets, so complete words are matched instead.
        for word in _WORD.finditer(text):
            if self._pattern.search(fold_text(word[0])):
                yield word.span()
