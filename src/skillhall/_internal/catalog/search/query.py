"""Query parsing and text folding: searches ignore case and accents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.stop_words import (
    AMBIGUOUS_WORDS,
    ENGLISH_STOP_WORDS,
    OTHER_STOP_WORDS,
)

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_QUERY_LENGTH = 4000  # characters; the rest of a longer text is ignored
MAX_TERMS = 64
SHORT_QUERY = 4  # words; the last word of a longer query is treated as complete
_MIN_PREFIX_LENGTH = 2  # a single letter would match too many words

# Latin, Greek and Cyrillic accents. In other scripts, combining marks distinguish words.
ACCENTS = "\u0300-\u036f"
# Scripts written without spaces between words: kana, Chinese characters, Hangul.
UNSPACED_SCRIPTS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
UNSPACED_SCRIPTS += "\U00020000-\U0003ffff"

_ACCENT = re.compile(f"[{ACCENTS}]+")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSPACED_RUN = re.compile(f"[{UNSPACED_SCRIPTS}]+")
_TERM = re.compile(rf"(?:[{UNSPACED_SCRIPTS}]+|(?:(?![{UNSPACED_SCRIPTS}])[^\W_])+)(\*?)")
# An approximation of the stems in the index (Porter) that also joins "scraper" and "scraping".
# A stem has at least three letters.
_SUFFIX = re.compile(
    r"(?<=[^\W_]{3})(?:[ai]bilit(?:y|ies)|[ai]bles?|ations?|ions?|ings?|ers?|ie[sd]?|ed|es|(?<!s)s|e|y|ly)$"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Letters and digits; everything else in ASCII separates words.
_ASCII_WORDS = {code: chr(code) if chr(code).isalnum() else " " for code in range(128)}


class Term(NamedTuple):
    """A folded search term."""

    text: str
    is_prefix: bool = False  # also matches longer words that start with it

    @property
    def is_unspaced(self) -> bool:
        """Whether its script has no spaces, so that it may occur inside a word."""
        return _UNSPACED_RUN.match(self.text) is not None


class Query(NamedTuple):
    """A parsed query."""

    text: str  # as written
    folded_text: str  # on one line
    terms: tuple[Term, ...]
    unfinished: str = ""  # the last word of a short query: the user may still be typing it

    @property
    def is_short(self) -> bool:
        """Whether the query consists of a few keywords rather than a sentence."""
        return len(self.terms) <= SHORT_QUERY

    @property
    def name_key(self) -> str:
        """Name key of the query, to find names that are equal to it."""
        return build_name_key(self.text)


def fold_text(text: str) -> str:
    """Remove case and accents, and replace lone surrogates."""
    if text.isascii():
        return text.lower()
    return _NON_ASCII.sub(lambda run: _fold_non_ascii(run[0]), text.lower())


# Most texts contain the same few runs: dashes, quotes, umlauts.
@lru_cache(maxsize=4096)
def _fold_non_ascii(run: str) -> str:
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", run).casefold())
    return _SURROGATE.sub("\ufffd", unicodedata.normalize("NFC", plain))


_ENGLISH = frozenset(map(fold_text, ENGLISH_STOP_WORDS))
_OTHERS = [frozenset(map(fold_text, words)) for words in OTHER_STOP_WORDS]
# A short query names the programming language.
_SHORT_QUERY_WORDS = frozenset({"go"})


def _find_stop_words(words: Collection[str]) -> set[str]:
    """Return the words that say nothing about the topic of a query with these words."""
    found = {*_ENGLISH.intersection(words)}
    if len(words) <= SHORT_QUERY:
        found -= _SHORT_QUERY_WORDS
    for language in _OTHERS:
        stop_words = language.intersection(words)
        if not stop_words <= AMBIGUOUS_WORDS | _ENGLISH:
            found |= stop_words
    return found


def fold_line(text: str) -> str:
    """Fold the text and collapse whitespace."""
    return " ".join(fold_text(text).split())


def build_name_key(name: str) -> str:
    """Return the words of a name, so that `a b`, `a-b` and `A_B` are equal.

    A name without words is its own key.
    """
    folded = fold_line(name)
    if folded.isascii():
        words = folded.translate(_ASCII_WORDS).split()
    else:
        words = [match[0].rstrip("*") for match in _TERM.finditer(folded)]
    return " ".join(words) or folded or name.strip()


def split_name(name: str) -> str:
    """Return the folded name for the index, followed by its camel-case words if any."""
    folded = fold_line(name)
    if name == folded:
        return folded
    words = fold_line(_CAMEL_CASE.sub(" ", name))
    return folded if words == folded else f"{folded} {words}"


def stem_word(word: str) -> str:
    """Return the stem of a folded English word, a common prefix of its forms."""
    return _SUFFIX.sub("", word)


def list_number_forms(word: str) -> set[str]:
    """Return a folded English word, its plural and its singular; some may not exist."""
    forms = {word, f"{word}s", f"{word}es"}
    if word.endswith("y"):
        forms.add(f"{word[:-1]}ies")
    if word.endswith("s"):
        forms.add(word[:-1])
    if word.endswith("es"):
        forms.add(word[:-2])
    if word.endswith("ies"):
        forms.add(f"{word[:-3]}y")
    return forms


def separate_unspaced(folded: str) -> str:
    """Put spaces around characters of unspaced scripts, so that each is a token."""
    if folded.isascii():
        return folded
    return _UNSPACED_RUN.sub(lambda run: f" {' '.join(run[0])} ", folded)


def parse_query(text: str) -> Query:
    """Parse a query; any text is valid.

    Stop words are left out unless there is nothing else. The last word of a short query may be
    unfinished, so it also matches names that start with it. A trailing `*` makes a word a prefix.
    """
    text = text[:MAX_QUERY_LENGTH].strip()
    folded = fold_line(text)
    matches = [(match[0].rstrip("*"), bool(match[1])) for match in _TERM.finditer(folded)]
    prefixes = {word for word, has_star in matches if has_star and len(word) >= _MIN_PREFIX_LENGTH}
    words = dict.fromkeys(word for word, _ in matches)
    stop_words = _find_stop_words(words)
    chosen = [word for word in words if word not in stop_words] or [*words]
    terms = tuple(
        Term(word, is_prefix=word in prefixes and not Term(word).is_unspaced)
        for word in chosen[:MAX_TERMS]
    )
    last = matches[-1][0] if 0 < len(words) <= SHORT_QUERY else ""
    is_unfinished = len(last) >= _MIN_PREFIX_LENGTH and not Term(last).is_unspaced
    return Query(text, folded, terms, last if is_unfinished else "")


def loosen_terms(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return alternative terms: the given ones, and bigrams of unspaced ones."""
    loose: dict[Term, None] = {}
    for term in terms:
        text = term.text
        is_long = term.is_unspaced and len(text) > 2  # noqa: PLR2004 - longer than a bigram
        bigrams = [Term(text[i : i + 2]) for i in range(len(text) - 1)] if is_long else []
        loose.update(dict.fromkeys([term, *bigrams]))
    return tuple(loose)[:MAX_TERMS]
