"""Removing skills from a shelf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.installer.agent_folders import UNIVERSAL
from skillhall._internal.installer.lock import keys_called, place_of
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.transaction import changing
from skillhall._internal.installer.verify import verify_entry
from skillhall.errors import Edited, NotOurs, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.installer.transaction import Work


def remove(shelf: Shelf, names: Iterable[str], *, force: bool = False) -> list[str]:
    """Remove skills with their copies and links; the keys of what was removed.

    One that was edited, or that is in no lock, goes only by `force`; it can be brought back.
    Raises: SkillNotFound, UnsafePath, Edited, NotOurs, WouldLose, NotASkill, OSError.
    """
    with changing(shelf, "remove") as work:
        found = [key for name in names for key in _keys(work, name, force=force)]
        keys = list(dict.fromkeys(found))
        if not force:
            for key in keys:
                _refuse_edited(work, key)
        for key in keys:
            work.take_away(key)
    return keys


def _keys(work: Work, name: str, *, force: bool) -> list[str]:
    try:
        return keys_called(work.entries, [name])
    except SkillNotFound:
        key = place_of(name if "/" in name else f"{UNIVERSAL}/{name}")
        if read_installed(work.shelf, key) is None:
            raise
        if not force:
            raise NotOurs(key) from None
        return [key]


def _refuse_edited(work: Work, key: str) -> None:
    """Raises: Edited."""
    links = work.entries[key].links()  # what stands there instead is not removed
    for place in verify_entry(work.shelf, key, work.entries[key]):
        if place.place not in links and (place.changed or place.extra):
            raise Edited(place.place, [*place.changed, *place.extra])
