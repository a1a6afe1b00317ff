"""Spelling: finds the known word that a mistyped word was meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MIN_LENGTH = 4  # shorter words have too many neighbors
_MIN_LENGTH_FOR_TWO = 8  # two mistakes are corrected from this length


def correct_word(word: str, known: Mapping[str, int]) -> str | None:
    """Return the most frequent known word within one mistake, or two in long words.

    A mistake is a missing, added or wrong letter, or two letters in the wrong order.
    """
    if len(word) < _MIN_LENGTH:
        return None
    variants = {*_vary(word)}
    found = variants & known.keys()
    if not found and len(word) >= _MIN_LENGTH_FOR_TWO:
        # Removing a letter on both sides covers most pairs of mistakes at a small cost.
        shorter = {*_delete_letters(word)}
        found = {
            other
            for other in known
            if abs(len(other) - len(word)) <= 1
            and other[0] == word[0]
            and not shorter.isdisjoint(_delete_letters(other))
        }
    return min(found, key=lambda other: (-known[other], other), default=None)


def _vary(word: str) -> Iterator[str]:
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


def _delete_letters(word: str) -> Iterator[str]:
    return (word[:i] + word[i + 1 :] for i in range(len(word)))
