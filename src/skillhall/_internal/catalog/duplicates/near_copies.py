"""Near copies of a new skill among existing skills."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.duplicates.text_comparison import (
    compare_phrases,
    format_similarity,
    hash_phrases,
    read_words,
    sketch_words,
)
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, SKILL_MD
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MIN_SIMILARITY = 0.8
MIN_WORDS = 40  # shorter texts are often alike by chance
# Size of the shorter text relative to the longer one, if all its words are in the longer one.
_MIN_SIZE_RATIO = MIN_SIMILARITY / (2 - MIN_SIMILARITY)
_SUMMARY_HASHES = 10  # near copies share three or more of them on average
_HASH_MASK = 0xFFFFFFFF
_MAX_COMPARED = 3
_MAX_READ = 200  # existing skills read for each new one, in a tenth of a second


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
    same id is ignored, because the two cannot coexist.
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
    message = f"nearly a copy of the existing skill {best_id!r} ({share} equal)"
    return Finding(Code.NEAR_COPY, message, 1, "keep only one of them, or make them more distinct")


def _read_summary(summary: str) -> array[int]:
    return array("I", bytes.fromhex(summary))


def list_present_skills(folder: str, sizes: Iterable[int]) -> Iterator[PresentSkill]:
    """Yield skills in a folder that new skills of these sizes may be near copies of.

    At most `_MAX_READ` skills of similar size are read for each new skill, so that the time does
    not grow with the number of skills. Linked and unreadable skills are left out.
    """
    handle, path = FolderHandle(os.path.realpath(folder)), RelativePath.parse(SKILL_MD)
    by_size = sorted(_list_sizes(handle.path))
    chosen: set[tuple[int, str]] = set()
    for size in sizes:
        at = bisect_left(by_size, (size, ""))
        for each in by_size[max(0, at - _MAX_READ // 2) : at + _MAX_READ // 2]:
            if _MIN_SIZE_RATIO <= each[0] / size <= 1 / _MIN_SIZE_RATIO:
                chosen.add(each)
    for _, name in sorted(chosen):
        read = partial(read_file_at, handle.child(name), path, MAX_SKILL_MD_BYTES)
        with suppress(SkillhallError, OSError):
            yield PresentSkill(name, summarize_text(read()), read)


def _list_sizes(folder: str) -> Iterator[tuple[int, str]]:
    """Yield the size of each SKILL.md, and the name of its folder."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # it does not exist yet
        return
    for name in names:
        with suppress(OSError):
            yield os.stat(os.path.join(folder, name, SKILL_MD)).st_size, name
