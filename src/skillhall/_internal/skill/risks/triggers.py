"""Triggers: words and literals that a text must contain for a rule to match.

A text is split into words once, and most texts contain no trigger at all. Without triggers,
each text would be searched for the needles of all rules, more than a hundred.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from skillhall._internal.skill.finding import Code
    from skillhall._internal.skill.risks.rule_engine import ScannedText

_WORD_CHARACTERS = f"{string.ascii_letters}{string.digits}.".encode()
_TO_WORDS = bytes(byte if byte in _WORD_CHARACTERS else ord("\n") for byte in range(256))


class Trigger(NamedTuple):
    r"""Words and a literal that a text must contain for a rule to match.

    A word is a complete run of ASCII letters and digits, so the pattern of the rule must have `\b`
    or another character on both sides of it. A word with a leading dot, such as ".ssh", matches
    only with the dot. A literal may be part of a word.
    """

    words: tuple[str, ...]  # lowercase, the rarest first
    literal: str = ""  # lowercase


def all_words(*triggers: str) -> tuple[Trigger, ...]:
    """Build a trigger from each argument: space-separated words that must all occur."""
    return tuple(Trigger(tuple(words.split())) for words in triggers)


def any_word(words: str) -> tuple[Trigger, ...]:
    """Build a trigger from each of the space-separated words."""
    return all_words(*words.split())


def combine_words(*groups: str) -> tuple[Trigger, ...]:
    """Build a trigger for every combination of one word from each group."""
    return tuple(map(Trigger, product(*map(str.split, groups))))


def with_literals(literals: Mapping[str, str]) -> tuple[Trigger, ...]:
    """Build a trigger from each literal and the words that must occur with it."""
    return tuple(Trigger(tuple(words.split()), literal) for literal, words in literals.items())


class TriggerIndex:
    """The triggers of all rules, by their first word."""

    def __init__(self, triggers: Iterable[tuple[Code, Trigger]]) -> None:
        self._by_word: dict[bytes, list[tuple[frozenset[bytes], bytes, Code]]] = {}
        self._literals: list[tuple[bytes, Code]] = []
        self._symbols: list[tuple[bytes, Code]] = []
        for code, (words, literal) in triggers:
            encoded = [word.encode() for word in words]
            if encoded:
                row = (frozenset(encoded), literal.encode(), code)
                self._by_word.setdefault(encoded[0], []).append(row)
            elif literal.isascii() and not any(map(str.isalnum, literal)) and " " not in literal:
                self._symbols.append((literal.encode(), code))
            else:
                self._literals.append((literal.encode(), code))
        rows = (row for rows in self._by_word.values() for row in rows)
        words_in_rows = {word for words, _, _ in rows for word in words}
        self._words = frozenset(words_in_rows | {b"." + word for word in words_in_rows})
        first_words = {*self._by_word, *(b"." + word for word in self._by_word)}
        self._first_lines = frozenset(word + b"\n" for word in first_words)

    def find_codes(self, text: ScannedText) -> set[Code]:
        """Return the codes of the rules that may match in the text."""
        data, symbols = text.lower_bytes, text.symbols
        codes: set[Code] = set()
        for literal, code in self._symbols:
            if literal in symbols:
                codes.add(code)
        for literal, code in self._literals:
            if literal in data:
                codes.add(code)
        lines = _write_word_lines(data)
        if data is not (unfolded := text.unfolded_bytes):
            # Rules that ignore case read a Kelvin sign as the letter k, others as a separator.
            lines += _write_word_lines(unfolded)
        # Most texts have no first word. This way, each word is in memory only for a moment, which
        # takes a sixth less time than a list of all words.
        if self._first_lines.isdisjoint(BytesIO(lines)):
            return codes
        found = {*self._words.intersection(lines.split())}
        found |= {word.lstrip(b".") for word in found}
        for word in found & self._by_word.keys():
            for needed, literal, code in self._by_word[word]:
                if code not in codes and needed <= found and literal in data:
                    codes.add(code)
        return codes


def _write_word_lines(data: bytes) -> bytes:
    """Return a line for each word; some lines are empty."""
    # A dot is part of the word after it: "a.b" are the words "a" and ".b".
    return data.replace(b".", b"\n.").translate(_TO_WORDS) + b"\n"
