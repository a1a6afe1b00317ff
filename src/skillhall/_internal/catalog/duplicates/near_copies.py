"""Near copies of a new skill among existing skills."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.duplicates.text_comparison import (
    compare_phrases,
    format_similarity,
    hash_phrases,
    read_words,
    sketch_words,
)
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MIN_SIMILARITY = 0.8
MIN_WORDS = 40  # shorter texts are often alike by chance
# Size of the shorter text relative to the longer one, if all its words are in the longer one.
MIN_SIZE_RATIO = MIN_SIMILARITY / (2 - MIN_SIMILARITY)
_SUMMARY_HASHES = 10  # near copies share three or more of them on average
_HASH_MASK = 0xFFFFFFFF
_MAX_COMPARED = 3


class PresentSkill(NamedTuple):
    """An existing skill."""

    id: str
    summary: str  # of its text, by `summarize_text`
    read: Callable[[], bytes]  # returns the SKILL.md


def summarize_text(data: bytes) -> str:
    """Return a few hashes of a SKILL.md's text, as a string; "" for a short text."""
    words = read_words(data)
    if len(words) < MIN_WORDS:
        return ""
    return (
        array("I", [h & _HASH_MASK for h in sketch_words(words)[:_SUMMARY_HASHES]]).tobytes().hex()
    )


def find_near_copy(data: bytes, skill_id: str, present: Iterable[PresentSkill]) -> Finding | None:
    """Return a finding about the most similar existing skill, if it is a near copy.

    All skills are compared by their summaries, and the best few by their texts. A skill with the
    same id is ignored, because it stays or is replaced.
    """
    wanted = {*_read_summary(summarize_text(data))}
    if not wanted:
        return None
    candidates = [
        (len(wanted.intersection(hashes)), skill)
        for skill in present
        if not wanted.isdisjoint(hashes := _read_summary(skill.summary))
        and fold_name(skill.id) != fold_name(skill_id)
    ]
    candidates.sort(key=lambda found: -found[0])
    phrases = hash_phrases(read_words(data))
    best = (0.0, "")
    for _, skill in candidates[:_MAX_COMPARED]:
        try:
            other = hash_phrases(read_words(skill.read()))
        except (SkillhallError, OSError):  # removed since it was listed
            continue
        best = max(best, (compare_phrases(phrases, other).similarity, skill.id))
    similarity, best_id = best
    if similarity < MIN_SIMILARITY:
        return None
    share = format_similarity(similarity)
    message = f"near copy of {best_id!r} ({share} equal), which already exists"
    return Finding(Code.NEAR_COPY, message, 1, "keep only one of them, or make them differ more")


def _read_summary(summary: str) -> array[int]:
    return array("I", bytes.fromhex(summary))
