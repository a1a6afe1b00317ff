"""Query parsing and text folding: searches ignore case and accents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

MAX_QUERY_LENGTH = 1000  # characters; more is a pasted file, not a query
MAX_TERMS = 32
_MIN_PREFIX_LENGTH = 2  # a single letter would match too many words

# Latin, Greek and Cyrillic accents. In other scripts, combining marks distinguish words.
ACCENTS = "\u0300-\u036f"
# Scripts written without spaces between words: kana, Chinese characters, Hangul.
_UNSPACED_SCRIPTS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_SCRIPTS += "\U00020000-\U0003ffff"

_ACCENT = re.compile(f"[{ACCENTS}]+")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED_SCRIPTS}]+")
_TERM = re.compile(rf"(?:[{_UNSPACED_SCRIPTS}]+|(?:(?![{_UNSPACED_SCRIPTS}])[^\W_])+)(\*?)")


class Term(NamedTuple):
    """A folded search term."""

    text: str
    is_prefix: bool = False  # also matches longer words that start with it

    @property
    def is_unspaced(self) -> bool:
        """Whether the script of the term has no spaces: it may occur anywhere in a word."""
        return _UNSPACED_RUN.match(self.text) is not None


class Query(NamedTuple):
    """A parsed query."""

    text: str  # as written
    folded_text: str  # on one line
    terms: tuple[Term, ...]


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


def fold_line(text: str) -> str:
    """Fold the text and collapse whitespace."""
    return " ".join(fold_text(text).split())


def separate_unspaced(folded: str) -> str:
    """Put spaces around characters of unspaced scripts, so that each is a token."""
    if folded.isascii():
        return folded
    return _UNSPACED_RUN.sub(lambda run: f" {' '.join(run[0])} ", folded)


def parse_query(text: str) -> Query:
    """Parse a query; every text is valid.

    The last term matches as a prefix because the user may still be typing it; other terms do if
    they end with a star.
    """
    text = text[:MAX_QUERY_LENGTH].strip()
    folded = fold_line(text)
    matches = [(match[0].rstrip("*"), bool(match[1])) for match in _TERM.finditer(folded)]
    prefixes = {word for word, has_star in matches if has_star} | {word for word, _ in matches[-1:]}
    words = list(dict.fromkeys(word for word, _ in matches))[:MAX_TERMS]
    terms = []
    for word in words:
        may_be_prefix = len(word) >= _MIN_PREFIX_LENGTH and not Term(word).is_unspaced
        terms.append(Term(word, is_prefix=may_be_prefix and word in prefixes))
    return Query(text, folded, tuple(terms))


def loosen_terms(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return terms to match any of; runs of unspaced scripts are split into bigrams."""
    loose: dict[Term, None] = {}
    for term in terms:
        text = term.text
        is_long = term.is_unspaced and len(text) > 2  # noqa: PLR2004 - longer than a bigram
        bigrams = [Term(text[i : i + 2]) for i in range(len(text) - 1)] if is_long else [term]
        loose.update(dict.fromkeys(bigrams))
    return tuple(loose)[:MAX_TERMS]
