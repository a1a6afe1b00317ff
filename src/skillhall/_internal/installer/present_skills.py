"""Skills that are already in a folder, to find near copies of new ones."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

from skillhall._internal.catalog.duplicates.near_copies import (
    MIN_SIZE_RATIO,
    PresentSkill,
    summarize_text,
)
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, SKILL_MD
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall.errors import SkillhallError

MAX_READ = 200  # skills for each new one: a tenth of a second


def list_present_skills(folder: str, sizes: Iterable[int]) -> Iterator[PresentSkill]:
    """Yield skills in a folder that new skills of these sizes may be near copies of.

    At most `MAX_READ` skills of similar size are read for each new skill, so that the time does not
    grow with the number of skills. Linked and unreadable skills are left out.
    """
    handle, path = FolderHandle(os.path.realpath(folder)), RelativePath.parse(SKILL_MD)
    by_size = sorted(_list_sizes(handle.path))
    chosen: set[tuple[int, str]] = set()
    for size in sizes:
        at = bisect_left(by_size, (size, ""))
        for each in by_size[max(0, at - MAX_READ // 2) : at + MAX_READ // 2]:
            if MIN_SIZE_RATIO <= each[0] / size <= 1 / MIN_SIZE_RATIO:
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
