"""Triggers: words and literals that a text must contain for a rule to match.

A text is split into words once, and most texts contain no trigger at all. Without triggers,
each text would be searched for the needles of all rules, more than a hundred.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from skillhall._internal.skill.finding import Code
    from skillhall._internal.skill.risks.rule_engine import ScannedText

_RARE_CHARACTERS = "!:."  # of literals without words, the rarest first
_WORD_CHARACTER = re.compile(r"[A-Za-z0-9\s]")
# Letters in lowercase, digits, dots, and a line break for every other byte.
_TO_WORD_LINES = bytes(
    ord(chr(byte).lower()) if chr(byte) in f"{string.ascii_letters}{string.digits}." else ord("\n")
    for byte in range(256)
)


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


class _TriggerRow(NamedTuple):
    """A trigger of a rule, with its texts as they are in the bytes of a text."""

    words: frozenset[bytes]
    literal: bytes
    code: Code


class TriggerIndex:
    """The triggers of all rules, by their first word, or by a character of their literal."""

    def __init__(self, triggers: Iterable[tuple[Code, Trigger]]) -> None:
        self._by_word: dict[bytes, list[_TriggerRow]] = {}
        # Literals without letters and digits, by a character of each.
        self._marks: dict[bytes, list[tuple[bytes, Code]]] = {}
        by_character: dict[str, list[tuple[str, Code]]] = {}
        for code, (words, literal) in triggers:
            if words:
                row = _TriggerRow(frozenset(map(str.encode, words)), literal.encode(), code)
                self._by_word.setdefault(words[0].encode(), []).append(row)
                continue
            character = next(filter(literal.__contains__, _RARE_CHARACTERS), literal[0])
            if _WORD_CHARACTER.search(literal) is None:
                marks = self._marks.setdefault(character.encode(), [])
                marks.append((literal.encode(), code))
            else:
                by_character.setdefault(character, []).append((literal, code))
        self._literals = [_LiteralGroup.create(*item) for item in by_character.items()]
        rows = (row for rows in self._by_word.values() for row in rows)
        self._word_lines = frozenset(_write_lines(word for row in rows for word in row.words))
        self._first_lines = frozenset(_write_lines(self._by_word))

    def find_codes(self, text: ScannedText) -> set[Code]:
        """Return the codes of the rules that may match in the text."""
        data, codes = text.folded_bytes, self._find_literals(text)
        lines = _write_word_lines(data)
        if data is not text.encoded:
            # Rules that ignore case read a Kelvin sign as the letter k, others as a separator.
            lines += _write_word_lines(text.encoded)
        # This way, each word is in memory only for a moment, which takes a sixth less time than a
        # list of all words.
        found_lines = self._word_lines.intersection(BytesIO(lines))
        if self._first_lines.isdisjoint(found_lines):
            return codes
        found = {line[:-1] for line in found_lines}
        found |= {word.lstrip(b".") for word in found}
        lower = data.lower()
        for word in found & self._by_word.keys():
            for needed, literal, code in self._by_word[word]:
                if code not in codes and needed <= found and literal in lower:
                    codes.add(code)
        return codes

    def _find_literals(self, text: ScannedText) -> set[Code]:
        """Return the codes of the triggers that have no words."""
        data = text.folded_bytes
        codes: set[Code] = set()
        # The marks are a tenth of the text, and nearly always show that a literal is not there.
        for character, literals in self._marks.items():
            for literal, code in literals if character in text.marks else ():
                if literal in text.marks and literal in data:
                    codes.add(code)
        for group in self._literals:
            if group.character in data and group.pattern.search(data) is not None:
                codes.update(group.find_codes(data.lower()))
        return codes


def _write_lines(words: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each word as it is in `_write_word_lines`: most match also after a dot."""
    for word in words:
        yield word + b"\n"
        yield b"." + word.removeprefix(b".") + b"\n"


def _write_word_lines(data: bytes) -> bytes:
    """Return a line for each word, in lowercase; some lines are empty."""
    # A dot is part of the word after it: "a.b" are the words "a" and ".b".
    lines = data.replace(b".", b"\n.").translate(_TO_WORD_LINES)
    return lines if lines.endswith(b"\n") else lines + b"\n"


class _LiteralGroup(NamedTuple):
    """Literals with one character in common.

    A search for one character takes a fraction of the time of a search for several.
    """

    character: bytes
    pattern: re.Pattern[bytes]
    literals: list[tuple[bytes, Code]]

    @classmethod
    def create(cls, character: str, literals: Sequence[tuple[str, Code]]) -> _LiteralGroup:
        """Build the pattern, which begins with the character."""
        branches = []
        for literal, _ in literals:
            before, _, after = map(re.escape, literal.partition(character))
            branches.append(f"(?<={before}{re.escape(character)}){after}")
        pattern = f"{re.escape(character)}(?:{'|'.join(branches)})"
        encoded = [(literal.encode(), code) for literal, code in literals]
        return cls(character.encode(), re.compile(pattern.encode(), re.IGNORECASE), encoded)

    def find_codes(self, lower: bytes) -> Iterable[Code]:
        """Return the codes of the literals in lowercase bytes."""
        return [code for literal, code in self.literals if literal in lower]
