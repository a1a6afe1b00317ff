"""What a person types as terms, and texts as the search compares them: no case, no accents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

MAX_QUERY_LENGTH = 1000  # characters; nobody types more, and a pasted file is no question
MAX_TERMS = 32
_MIN_PREFIX_LENGTH = 2  # letters; one letter begins half of all words

# Latin, Greek and Cyrillic accents. Marks of other scripts are letters to those who write them.
ACCENTS = "\u0300-\u036f"
# Scripts that put no blank between words: kana, Chinese characters, Hangul.
_UNSPACED_SCRIPTS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_SCRIPTS += "\U00020000-\U0003ffff"

_ACCENT = re.compile(f"[{ACCENTS}]+")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED_SCRIPTS}]+")
_TERM = re.compile(rf"(?:[{_UNSPACED_SCRIPTS}]+|(?:(?![{_UNSPACED_SCRIPTS}])[^\W_])+)(\*?)")


class Term(NamedTuple):
    """A word to look for, folded."""

    text: str
    is_prefix: bool = False  # whether longer words that begin so count, too

    @property
    def is_unspaced(self) -> bool:
        """Whether it is written in a script without blanks, where a word may begin anywhere."""
        return _UNSPACED_RUN.match(self.text) is not None


class Query(NamedTuple):
    """What was asked for: the whole text on one line, and the terms in it."""

    text: str  # as written
    folded_text: str  # folded
    terms: tuple[Term, ...]


def fold_text(text: str) -> str:
    """`text` without case, accents and halves of characters."""
    if text.isascii():
        return text.lower()
    return _NON_ASCII.sub(_fold_match, text.lower())


def _fold_match(run: re.Match[str]) -> str:
    return _fold_non_ascii(run[0])


@lru_cache(maxsize=4096)
def _fold_non_ascii(run: str) -> str:
    """A run beyond ASCII, folded. Most texts hold the same few: dashes, quotes, umlauts."""
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", run).casefold())
    return _SURROGATE.sub("\ufffd", unicodedata.normalize("NFC", plain))


def fold_line(text: str) -> str:
    """The same on one line: names that differ in blanks alone are one."""
    return " ".join(fold_text(text).split())


def separate_unspaced(folded: str) -> str:
    """A folded text as tokens: each character of a script without blanks is one of its own."""
    return folded if folded.isascii() else _UNSPACED_RUN.sub(_separate_run, folded)


def _separate_run(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} "


def parse_query(text: str) -> Query:
    """The query that `text` means; every text means one.

    The last term may be unfinished, so it matches the words that it begins; others do if a star
    follows them.
    """
    kept = text[:MAX_QUERY_LENGTH].strip()
    needle = fold_line(kept)
    found = [(match[0].rstrip("*"), bool(match[1])) for match in _TERM.finditer(needle)]
    beginnings = {word for word, has_star in found if has_star} | {word for word, _ in found[-1:]}
    words = list(dict.fromkeys(word for word, _ in found))[:MAX_TERMS]
    return Query(kept, needle, tuple(_build_term(word, word in beginnings) for word in words))


def _build_term(word: str, is_prefix: bool) -> Term:  # noqa: FBT001 - the field of a value
    term = Term(word)
    long_enough = len(word) >= _MIN_PREFIX_LENGTH and not term.is_unspaced
    return Term(word, is_prefix and long_enough)


def loosen_terms(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Terms of which one is enough: a run without blanks is a sentence, so its pairs count."""
    loose: dict[Term, None] = {}
    for term in terms:
        text = term.text
        is_long = term.is_unspaced and len(text) > 2  # noqa: PLR2004 - longer than a pair
        pairs = [Term(text[at : at + 2]) for at in range(len(text) - 1)] if is_long else [term]
        loose.update(dict.fromkeys(pairs))
    return tuple(loose)[:MAX_TERMS]
