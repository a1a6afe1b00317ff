"""Sections of texts: their numbers in the index, and their ranking.

A prompt is about one thing that a skill can do, and often one section is about that. The table of
sections stores neither positions nor lengths: most of the time and space of an index would be
spent on them. The number of a row tells its text and its approximate length instead.
"""

from __future__ import annotations

import re
from heapq import nlargest
from math import log
from operator import add
from typing import TYPE_CHECKING

from skillhall._internal.catalog.search.query import UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.search.query import Term

MAX_TEXT = 64 * 1024  # bytes; the rest of a SKILL.md is not searched
# Bytes of the two parts of a shortened text.
_START_LENGTH = 1536
_HEADINGS_LENGTH = 512
MAX_SECTIONS = 64  # of a text; the last contains the rest
# A section of size n has less than 2^(n + 6) characters, and one of the last size any number.
_SIZES = 8
_SIZE_OF_BITS = [min(max(bits - 6, 0), _SIZES - 1) for bits in range(32)]
_ROWS_PER_TEXT = MAX_SECTIONS * _SIZES
_MAX_CANDIDATES = 10_000  # once there are more sections, further terms add none
_USUAL_COUNT = 16  # sections of a text
_USUAL_LENGTH = 400  # characters of a section
# Constants of BM25 for the effect of the length, as in SQLite.
_K1, _B = 1.2, 0.75
_WEIGHTS = [  # by size, for the middle of its lengths
    (_K1 + 1) / (1 + _K1 * (1 - _B + _B * 48 * 2**size / _USUAL_LENGTH)) for size in range(_SIZES)
]

_ASCII = bytes(range(128))
# First bytes of characters of unspaced scripts in UTF-8; dashes and quotes start with E2.
_UNSPACED_LEAD_BYTE = re.compile(rb"[\xe3-\xed\xef\xf0]")
_HEADING = re.compile(rb"\n##([^\n]*)")
_UNSPACED_RUN = re.compile(f"[{UNSPACED_SCRIPTS}]+")


def shorten_text(data: bytes) -> bytes:
    """Return the beginning of a text; headings of the rest are its last section."""
    if len(data) <= _START_LENGTH:
        return data
    # Do not cut in the middle of a word, except in scripts without spaces.
    space = data.rfind(b" ", 0, _START_LENGTH)
    end = space if space > _START_LENGTH // 2 else _START_LENGTH
    headings = _HEADING.findall(data, end)
    last = b" ".join(headings)[:_HEADINGS_LENGTH]
    return b"\n##".join([data[:end], last]) if headings else data[:end]


def split_sections(data: bytes) -> list[str]:
    """Decode a text and split it before its headings of level two and more.

    Unspaced scripts are split into pairs of characters. The tokenizer folds case and accents.
    """
    text = data.decode("utf-8", "replace")
    # Most texts have few other characters, so that the search is cheap.
    if not text.isascii() and _UNSPACED_LEAD_BYTE.search(data.translate(None, _ASCII)):
        text = _UNSPACED_RUN.sub(_split_into_pairs, text)
    return text.split("\n##", MAX_SECTIONS - 1)


def _split_into_pairs(run: re.Match[str]) -> str:
    text = run[0]
    # The last character alone, too: a search for one character is a search for a prefix.
    return " ".join(["", *map(add, text, text[1:]), text[-1], ""])


def format_section_term(term: Term) -> str:
    """Return a term as an expression of words without positions."""
    text = term.text
    if not term.is_unspaced:
        return f'"{text}" *' if term.is_prefix else f'"{text}"'
    if len(text) == 1:
        return f'"{text}" *'
    pairs = " AND ".join(f'"{pair}"' for pair in map(add, text, text[1:]))
    return f"({pairs})"


def number_sections(text_number: int, sections: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Return the sections of a text with the numbers of their rows."""
    # Neither a loop, which would take longer, nor a list: hundreds of tuples at once would start
    # the garbage collector again and again.
    first = text_number * _ROWS_PER_TEXT
    sizes = map(_SIZE_OF_BITS.__getitem__, map(int.bit_length, map(len, sections)))
    return zip(map(add, range(first, first + _ROWS_PER_TEXT, _SIZES), sizes), sections, strict=True)


def rank_texts(
    counts: Mapping[str, int],
    find_sections: Callable[[str], Iterable[int]],
    text_count: int,
    limit: int,
) -> list[tuple[int, float]]:
    """Return the texts of the best sections and their scores, best first.

    `counts` has the expressions of the terms, the rarest first, and the numbers of their rows,
    which may be estimates. `find_sections` returns the rows that match an expression. A score is
    that of BM25, except that a word counts once in a section.
    """
    section_count = _USUAL_COUNT * text_count
    scores: dict[int, float] = {}
    candidates: list[str] = []  # expressions that together match the sections with a score
    for expression, count in counts.items():
        weight = log(1 + section_count / count)
        if len(scores) > _MAX_CANDIDATES:
            # The database compares the rows of both in a fraction of the time of reading them.
            rows = find_sections(f"{expression} AND ({' OR '.join(candidates)})")
        else:
            candidates.append(expression)
            rows = find_sections(expression)
        for row in rows:
            scores[row] = scores.get(row, 0.0) + weight
    found = [(score * _WEIGHTS[row % _SIZES], -row) for row, score in scores.items()]
    best: dict[int, float] = {}
    for score, row in nlargest(limit, found):
        best.setdefault(-row // _ROWS_PER_TEXT, score)
    return [*best.items()]
