"""Verifying: whether installed skills are what their lock says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import find_entry_keys
from skillhall._internal.installer.project import read_installed
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Project


class VerifyResult(NamedTuple):
    """One place of a skill: what differs from the lock, by path."""

    key: str
    place: str
    is_there: bool = True
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def is_intact(self) -> bool:
        """Whether it is what the lock says."""
        return self.is_there and not (self.changed or self.missing or self.extra)


def verify(project: Project, names: Iterable[str] = ()) -> list[VerifyResult]:
    """Every place of the skills, compared with the lock.

    Raises: LockNotFound, LockInvalid, SkillNotFound.
    """
    entries = project.read_lock_entries()
    return [
        result
        for key in find_entry_keys(entries, names)
        for result in verify_entry(project, key, entries[key])
    ]


def verify_entry(project: Project, key: str, entry: LockEntry) -> list[VerifyResult]:
    """Every place of one skill, compared with its entry."""
    copies = [_compare_copy(project, key, place, entry) for place in (key, *entry.get_copy_paths())]
    return [*copies, *(_compare_link(project, key, place) for place in entry.get_link_paths())]


def _compare_link(project: Project, key: str, target_path: str) -> VerifyResult:
    path = project.path(target_path)
    if os.path.realpath(path) == os.path.realpath(project.path(key)):
        return VerifyResult(key, target_path)
    is_there = os.path.lexists(path)
    return VerifyResult(
        key, target_path, is_there=is_there, extra=(target_path,) if is_there else ()
    )


def _compare_copy(project: Project, key: str, target_path: str, entry: LockEntry) -> VerifyResult:
    present = read_installed(project, target_path)
    if present is None:
        return VerifyResult(key, target_path, is_there=False)
    expected = {file.path: (file.sha256, file.mode == "100755") for file in entry.files}
    found = {path: (sha256_hex(file.data), file.executable) for path, file in present.files.items()}
    changed = [path for path in expected if path in found and found[path] != expected[path]]
    missing = [path for path in expected if path not in found]
    extra = [*(path for path in found if path not in expected), *present.unrestorable]
    return VerifyResult(
        key,
        target_path,
        changed=tuple(sorted(changed)),
        missing=tuple(sorted(missing)),
        extra=tuple(sorted(extra)),
    )
