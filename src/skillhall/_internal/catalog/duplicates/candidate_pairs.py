"""Pairs of texts that may be copies, found by the hashes in their sketches.

Time and memory are linear in the number of texts, however similar they are: each text is paired
with only a few others.
"""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Pair = tuple[int, int]

MAX_COMMON = 64  # texts; a phrase in more texts is part of a template
_MAX_PAIRS = 4  # pairs of a text with earlier ones
_NEIGHBORS = 3  # earlier texts with the same hash that a text is paired with
_MIN_SHARED = 2  # hashes
_MIN_SHARED_SHARE = 0.1  # of the hashes; a text with a fifth of its words replaced shares a third
_TEMPLATE_SHARE = (
    0.5  # of the hashes; a text with a higher share of common hashes is made from a template
)
_PARTS = 64  # of the rows; each is sorted separately, to keep few objects in memory
_TEXT_BITS = 24
_TEXT_MASK = (1 << _TEXT_BITS) - 1


class CandidatePairs(NamedTuple):
    """Pairs of text numbers, the lower one first, and the number of common phrases.

    Phrases that occur in many texts are not used to find pairs, except for texts that contain
    hardly any others.
    """

    best_pairs: list[Pair]  # for each text, with one earlier text, if there is one
    other_pairs: list[Pair]
    common_phrases: int


def find_candidate_pairs(sketches: Sequence[Sequence[int]]) -> CandidatePairs:
    """Return the pairs of texts whose sketches have enough hashes in common."""
    links = _Parts()  # pairs, once for each common hash
    common: list[array[int]] = []
    common_counts = array("L", bytes(len(sketches) * array("L").itemsize))
    for texts in _find_buckets(sketches):
        if len(texts) <= MAX_COMMON:
            _link_neighbors(texts, links)
        else:
            common.append(array("L", texts))
            for text in texts:
                common_counts[text] += 1
    for bucket in common:
        from_template = [
            text for text in bucket if common_counts[text] > _TEMPLATE_SHARE * len(sketches[text])
        ]
        _link_neighbors(from_template, links)
    best, others = [], []
    for part in links.rows:
        for text, found in _rank_pairs(part, sketches):
            first, *rest = ((earlier, text) for earlier in found)
            best.append(first)
            others += rest
    return CandidatePairs(sorted(best), sorted(others), len(common))


class _Parts:
    """64-bit rows of a key and a text number, distributed by key."""

    def __init__(self) -> None:
        self.rows = [array("Q") for _ in range(_PARTS)]

    def append(self, key: int, text: int) -> None:
        self.rows[key % _PARTS].append(key << _TEXT_BITS | text)


def _find_buckets(sketches: Iterable[Iterable[int]]) -> Iterator[list[int]]:
    """For each hash that several texts share, yield these texts in order."""
    parts = _Parts()
    for text, sketch in enumerate(sketches):
        for value in sketch:
            parts.append(value, text)
    for part in parts.rows:
        bucket, last = [0], -1
        for row in sorted(part):
            value = row >> _TEXT_BITS
            if value == last:
                bucket.append(row & _TEXT_MASK)
                continue
            if len(bucket) > 1:
                yield bucket
            bucket, last = [row & _TEXT_MASK], value
        if len(bucket) > 1:
            yield bucket


def _link_neighbors(texts: Sequence[int], links: _Parts) -> None:
    for distance in range(1, _NEIGHBORS + 1):
        for earlier, later in zip(texts, texts[distance:], strict=False):
            links.append(later, earlier)


def _rank_pairs(
    part: array[int], sketches: Sequence[Sequence[int]]
) -> Iterator[tuple[int, list[int]]]:
    """Yield each text with the earlier texts that share the most hashes with it."""
    candidates: dict[int, list[tuple[int, int]]] = {}
    for row, equal in groupby(sorted(part)):
        shared, text, earlier = sum(1 for _ in equal), row >> _TEXT_BITS, row & _TEXT_MASK
        sizes = len(sketches[text]), len(sketches[earlier])
        if shared >= max(min(_MIN_SHARED, *sizes), _MIN_SHARED_SHARE * min(sizes)):
            candidates.setdefault(text, []).append((-shared, earlier))
    for text, found in candidates.items():
        yield text, [earlier for _, earlier in sorted(found)[:_MAX_PAIRS]]
