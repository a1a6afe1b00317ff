"""Spelling: corrections of mistyped words, and other spellings of a word."""

from __future__ import annotations

import re
from operator import ne
from typing import TYPE_CHECKING

from skillhall._internal.catalog.search.query import list_number_forms
from skillhall._internal.catalog.search.stop_words import ENGLISH_STOP_WORDS

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
        # Verb and noun: `analyze` and `analysis`.
        *(("yse", "ysis"), ("yze", "ysis")),
    )
]
# Abbreviations, file name extensions and other names of one thing, not words of similar meaning.
_EQUAL_NAMES = (
    ("2fa", "two factor authentication"),
    ("adr", "architecture decision record"),
    ("ai", "artificial intelligence"),
    ("auth", "authentication"),
    ("aws", "amazon web services"),
    ("ci", "continuous integration"),
    ("cli", "command line"),
    ("db", "database"),
    ("ddd", "domain driven design"),
    ("dnd", "dungeons and dragons"),
    ("docs", "documentation"),
    ("docx", "word document"),
    ("e2e", "end to end"),
    ("env", "environment"),
    ("etl", "extract transform load"),
    ("excel", "xlsx", "xls"),
    ("faq", "frequently asked questions"),
    ("gcp", "google cloud"),
    ("gdpr", "dsgvo", "general data protection regulation"),
    ("go", "golang"),
    ("hr", "human resources"),
    ("iac", "infrastructure as code"),
    ("jpg", "jpeg"),
    ("js", "javascript"),
    ("kpi", "key performance indicator"),
    ("llm", "language model"),
    ("md", "markdown"),
    ("mfa", "multi factor authentication"),
    ("ml", "machine learning"),
    ("mongo", "mongodb"),
    ("nda", "non disclosure agreement"),
    ("nlp", "natural language processing"),
    ("ocr", "optical character recognition", "text recognition"),
    ("okr", "objectives and key results"),
    ("orm", "object relational mapper"),
    ("postgres", "postgresql"),
    ("powerpoint", "pptx", "ppt"),
    ("pr", "pull request"),
    ("prd", "product requirements document"),
    ("pwa", "progressive web app"),
    ("qa", "quality assurance"),
    ("rag", "retrieval augmented generation"),
    ("repo", "repository"),
    ("rpg", "role playing game"),
    ("seo", "search engine optimization"),
    ("spa", "single page application"),
    ("speech to text", "speech recognition", "transcription"),
    ("sre", "site reliability engineering"),
    ("tdd", "test driven development"),
    ("ts", "typescript"),
    ("tts", "text to speech", "speech synthesis"),
    ("ui", "user interface"),
    ("ux", "user experience"),
    ("vm", "virtual machine"),
    ("yml", "yaml"),
)
_LONGEST_NAME = 3  # words, without stop words


def _list_other_names() -> dict[str, list[str]]:
    """Return the other names of each name, by its words without stop words."""
    others: dict[str, list[str]] = {}
    for names in _EQUAL_NAMES:
        for name in names:
            words = [word for word in name.split() if word not in ENGLISH_STOP_WORDS] or [name]
            others[" ".join(words)] = [one for one in names if one != name]
    return others


_OTHER_NAMES = _list_other_names()


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
    """Return other spellings of a word or a phrase: British, American, short or in full.

    Most of the returned words do not exist: check that they occur.
    """
    variants = {*_find_other_names(word)}
    if len(word) < _MIN_LENGTH_OF_VARIANT or " " in word:
        return sorted(variants)
    variants |= {
        pattern.sub(other, word)
        for british, american, one, another in _SPELLINGS
        for pattern, other in ((british, another), (american, one))
    }
    if len(word) >= _MIN_LENGTH_OF_LONG:
        variants.add(shorten_word(word))
    return sorted(variants - {word})


def list_variants(terms: Sequence[Term]) -> list[list[str]]:
    """Return other spellings of the words of a short query, and of phrases in it."""
    variants = [vary_spelling(term.text) for term in terms]
    for start in range(len(terms)):
        for end in range(start + 2, min(start + _LONGEST_NAME, len(terms)) + 1):
            phrase = terms[start:end]
            if any(term.is_unspaced for term in phrase):
                continue
            others = vary_spelling(" ".join(term.text for term in phrase))
            if end == start + 2:
                joined = phrase[0].text + phrase[1].text
                others += [joined, *_find_other_names(joined)]
            for number in range(start, end):
                variants[number] += others
    return variants


def _find_other_names(word: str) -> Sequence[str]:
    if word in _OTHER_NAMES:
        return _OTHER_NAMES[word]
    known = sorted(_OTHER_NAMES.keys() & list_number_forms(word))
    return _OTHER_NAMES[known[0]] if known else ()


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
