"""Verifying: whether installed skills are what their lock says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import keys_called
from skillhall._internal.installer.project import read_installed
from skillhall._internal.skill.bundle import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Shelf


class Verified(NamedTuple):
    """One place of a skill: what differs from the lock, by path."""

    key: str
    place: str
    is_there: bool = True
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether it is what the lock says."""
        return self.is_there and not (self.changed or self.missing or self.extra)


def verify(shelf: Shelf, names: Iterable[str] = ()) -> list[Verified]:
    """Every place of the skills, compared with the lock.

    Raises: LockNotFound, LockInvalid, SkillNotFound.
    """
    entries = shelf.locked()
    return [
        result
        for key in keys_called(entries, names)
        for result in verify_entry(shelf, key, entries[key])
    ]


def verify_entry(shelf: Shelf, key: str, entry: LockEntry) -> list[Verified]:
    """Every place of one skill, compared with its entry."""
    copies = [_compare(shelf, key, place, entry) for place in (key, *entry.copies())]
    return [*copies, *(_compare_link(shelf, key, place) for place in entry.links())]


def _compare_link(shelf: Shelf, key: str, place: str) -> Verified:
    path = shelf.path(place)
    if os.path.realpath(path) == os.path.realpath(shelf.path(key)):
        return Verified(key, place)
    is_there = os.path.lexists(path)
    return Verified(key, place, is_there=is_there, extra=(place,) if is_there else ())


def _compare(shelf: Shelf, key: str, place: str, entry: LockEntry) -> Verified:
    present = read_installed(shelf, place)
    if present is None:
        return Verified(key, place, is_there=False)
    expected = {file.path: (file.sha256, file.mode == "100755") for file in entry.files}
    found = {path: (sha256_of(file.data), file.executable) for path, file in present.files.items()}
    changed = [path for path in expected if path in found and found[path] != expected[path]]
    missing = [path for path in expected if path not in found]
    extra = [*(path for path in found if path not in expected), *present.strange]
    return Verified(
        key,
        place,
        changed=tuple(sorted(changed)),
        missing=tuple(sorted(missing)),
        extra=tuple(sorted(extra)),
    )
