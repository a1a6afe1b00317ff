"""Spelling: corrections of mistyped words, and other spellings of a word."""

from __future__ import annotations

import re
from itertools import pairwise
from operator import ne
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.catalog.search.query import Term

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MIN_LENGTH = 4  # shorter words have too many neighbors
_MAX_LENGTH = 40  # longer words are hardly typing errors, and their neighbors take too much memory
_MIN_LENGTH_FOR_TWO = 8  # two mistakes are corrected from this length
_MIN_PART = 2  # letters of each of two joined words: `ui` in `uidesign`
_MIN_LENGTH_OF_VARIANT = 5  # `color`
_MIN_LENGTH_OF_LONG = 10  # `kubernetes`
_ENDING = r"(?=(?:e?s|e?d|ing|ings|able|ful|ist|ite|ites|al|ally|e)?$)"
# British and American endings. Generated words that do not exist are harmless.
_SPELLINGS = [
    (re.compile(rf"{british}{_ENDING}"), re.compile(rf"{american}{_ENDING}"), british, american)
    for british, american in (
        *(("our", "or"), ("enc", "ens"), ("is", "iz"), ("ys", "yz"), ("tre", "ter")),
        *(("ogue", "og"), ("isation", "ization"), ("ll", "l"), ("mme", "m")),
    )
]
# Abbreviations and file name extensions that skills use as names, and what they stand for.
_ABBREVIATIONS = {
    "ai": "artificial intelligence",
    "auth": "authentication",
    "ci": "continuous integration",
    "cli": "command line",
    "db": "database",
    "docs": "documentation",
    "env": "environment",
    "golang": "go",
    "jpg": "jpeg",
    "js": "javascript",
    "llm": "language model",
    "md": "markdown",
    "ml": "machine learning",
    "mongo": "mongodb",
    "postgres": "postgresql",
    "pptx": "powerpoint",
    "pr": "pull request",
    "repo": "repository",
    "ts": "typescript",
    "ui": "user interface",
    "ux": "user experience",
    "xlsx": "excel",
    "yml": "yaml",
}
_FULL_NAMES = {full: short for short, full in _ABBREVIATIONS.items()}


def is_correctable(word: str) -> bool:
    """Whether the word is neither too short nor too long for a correction."""
    return _MIN_LENGTH <= len(word) <= _MAX_LENGTH


def correct_word(word: str, known: Mapping[str, int]) -> str | None:
    """Return the most frequent known word within one mistake, or two in long words.

    A mistake is a missing, added or wrong letter, or two letters in the wrong order.
    """
    if not is_correctable(word):
        return None
    found = {*list_mistakes(word)} & known.keys()
    if not found and len(word) >= _MIN_LENGTH_FOR_TWO:
        shorter = {*_delete_letters(word)}
        found = {
            other
            for other in known
            if abs(len(other) - len(word)) <= 1
            and other[0] == word[0]
            and (
                _has_two_wrong_letters(word, other)
                # Removing a letter on both sides covers most other pairs at a small cost.
                or not shorter.isdisjoint(_delete_letters(other))
            )
        }
    return min(found, key=lambda other: (-known[other], other), default=None)


def list_mistakes(word: str) -> Iterator[str]:
    """Yield the strings that differ from the word by one mistake; some more than once."""
    for i in range(len(word) + 1):
        start, end = word[:i], word[i:]
        if end:
            yield start + end[1:]
        if len(end) > 1:
            yield start + end[1] + end[0] + end[2:]
        for letter in _LETTERS:
            yield start + letter + end
            if end:
                yield start + letter + end[1:]


def split_word(word: str) -> list[str]:
    """Return the ways to write a word as two, each of at least two letters."""
    return [f"{word[:i]} {word[i:]}" for i in range(_MIN_PART, len(word) - _MIN_PART + 1)]


def vary_spelling(word: str) -> list[str]:
    """Return other spellings of one or two words: British, American, short or in full.

    Most of the returned words do not exist: check that they occur.
    """
    known = [names[word] for names in (_ABBREVIATIONS, _FULL_NAMES) if word in names]
    if len(word) < _MIN_LENGTH_OF_VARIANT or " " in word:
        return known
    variants = {*known} | {
        pattern.sub(other, word)
        for british, american, one, another in _SPELLINGS
        for pattern, other in ((british, another), (american, one))
    }
    if len(word) >= _MIN_LENGTH_OF_LONG:
        variants.add(shorten_word(word))
    return sorted(variants - {word})


def list_variants(terms: Sequence[Term]) -> list[list[str]]:
    """Return other spellings of the words of a short query, and of pairs of words."""
    variants = [vary_spelling(term.text) for term in terms]
    for number, (first, second) in enumerate(pairwise(terms)):
        if not first.is_unspaced and not second.is_unspaced:
            pair = [first.text + second.text, *vary_spelling(f"{first.text} {second.text}")]
            variants[number] += pair
            variants[number + 1] += pair
    return variants


def shorten_word(word: str) -> str:
    """Return the numeronym of a word: `k8s` for `kubernetes`."""
    return f"{word[0]}{len(word) - 2}{word[-1]}"


def is_numeronym(word: str) -> bool:
    """Whether the word is a number between two letters, as in `k8s` and `i18n`."""
    return word[1:-1].isdecimal() and word[0].isalpha() and word[-1].isalpha()


def _has_two_wrong_letters(word: str, other: str) -> bool:
    return len(word) == len(other) and sum(map(ne, word, other)) <= 2  # noqa: PLR2004


def _delete_letters(word: str) -> Iterator[str]:
    return (word[:i] + word[i + 1 :] for i in range(len(word)))
