"""Comparison of texts by shared phrases, and sketches to find candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from skillhall._internal.skill.copy_key import find_copied_text, split_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

PHRASE_LENGTH = 3  # words; two texts rarely share a phrase of three words by chance
SAMPLE_SIZE = 48  # shingles of a text, on average
_MIN_SHARE = 1 / 64  # of the shingles of a long text
_LOWEST = -(2**63)  # hash values range from this number to its negation
_HASH_RANGE = 2**64
SKETCH_BITS = 40  # of each value in a sketch
_SKETCH_MASK = (1 << SKETCH_BITS) - 1


class TextComparison(NamedTuple):
    """Word counts of two texts: in total, and in three-word phrases that both have."""

    shared: int  # words of the first text
    other_shared: int  # words of the second text
    words: int
    other_words: int

    @property
    def similarity(self) -> float:
        """The share of all words that are in shared phrases, from 0 to 1."""
        return (self.shared + self.other_shared) / (self.words + self.other_words)

    @property
    def containment(self) -> float:
        """The share of words in shared phrases, for the text where it is higher."""
        return max(self.shared / self.words, self.other_shared / self.other_words)


def format_similarity(similarity: float) -> str:
    """Return a similarity in percent; 100% only for the same text."""
    return f"{int(similarity * 100)}%"


def read_words(data: bytes) -> list[bytes]:
    """Return the words to compare: those of the description and the body."""
    return split_words(find_copied_text(data))


def hash_phrases(words: Sequence[bytes]) -> list[int]:
    """Return a hash of the phrase that starts at each word.

    The hashes differ between processes. Integers take half the time of tuples, which Python's
    garbage collector has to visit.
    """
    return [*map(hash, zip(words, words[1:], words[2:], strict=False))]


def compare_phrases(phrases: Sequence[int], other: Sequence[int]) -> TextComparison:
    """Compare two texts by the hashes of their phrases, in linear time.

    The result is close to the share of unchanged words, even if changes are spread over the
    complete text. In that case, the Jaccard similarity of longer shingles would be close to zero.
    """
    shared = set(phrases).intersection(other)
    return TextComparison(
        _count_words(phrases, shared),
        _count_words(other, shared),
        len(phrases) + PHRASE_LENGTH - 1,
        len(other) + PHRASE_LENGTH - 1,
    )


def _count_words(phrases: Sequence[int], shared: Collection[int]) -> int:
    """Count the words that are part of at least one shared phrase."""
    # One byte for each word: 1 where a phrase starts, then also for the next two words. Shifting
    # one large number is twenty times as fast as a loop.
    flags = int.from_bytes(bytes(map(shared.__contains__, phrases)), "little")
    return (flags | flags << 8 | flags << 16).bit_count()


def sketch_words(words: Sequence[bytes]) -> list[int]:
    """Return the lowest hashes of the five-word shingles, in order.

    Similar texts have hashes in common. Most texts get up to about `SAMPLE_SIZE` hashes. A long
    text gets more, so that a short text that it contains is found, too. Python's
    hash of integers does not depend on the process.
    """
    ids = [*map(crc32, words)]
    shingles = zip(ids, ids[1:], ids[2:], ids[3:], ids[4:], strict=False)
    share = max(SAMPLE_SIZE / max(SAMPLE_SIZE, len(ids) - 4), _MIN_SHARE)
    limit = _LOWEST + int(share * _HASH_RANGE)
    lowest = sorted({value for value in map(hash, shingles) if value < limit})
    return [value & _SKETCH_MASK for value in lowest]
