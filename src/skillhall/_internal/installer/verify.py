"""Comparison of installed skills with the lock file."""

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
    """Differences between one target of a skill and the lock file, by path."""

    # The fields are keys in the output of `verify --json`: do not rename them.
    key: str
    place: str  # path of the target
    is_there: bool = True
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def is_intact(self) -> bool:
        """Whether the target matches the lock file."""
        return self.is_there and not (self.changed or self.missing or self.extra)


def verify(project: Project, names: Iterable[str] = ()) -> list[VerifyResult]:
    """Compare every target of the skills with the lock file.

    Raises: LockNotFound, LockInvalid, SkillNotFound.
    """
    entries = project.read_lock_entries()
    return [
        result
        for key in find_entry_keys(entries, names)
        for result in verify_entry(project, key, entries[key])
    ]


def verify_entry(project: Project, key: str, entry: LockEntry) -> list[VerifyResult]:
    """Compare every target of one skill with its entry."""
    copies = [_compare_copy(project, key, path, entry) for path in (key, *entry.get_copy_paths())]
    return [*copies, *(_compare_link(project, key, path) for path in entry.get_link_paths())]


def _compare_link(project: Project, key: str, target_path: str) -> VerifyResult:
    path = project.path(target_path)
    if os.path.realpath(path) == os.path.realpath(project.path(key)):
        return VerifyResult(key, target_path)
    exists = os.path.lexists(path)
    return VerifyResult(key, target_path, is_there=exists, extra=(target_path,) if exists else ())


def _compare_copy(project: Project, key: str, target_path: str, entry: LockEntry) -> VerifyResult:
    installed = read_installed(project, target_path)
    if installed is None:
        return VerifyResult(key, target_path, is_there=False)
    expected = {file.path: (file.sha256, file.mode == "100755") for file in entry.files}
    actual = {
        path: (sha256_hex(file.data), file.executable) for path, file in installed.files.items()
    }
    changed = [path for path in expected if path in actual and actual[path] != expected[path]]
    missing = [path for path in expected if path not in actual]
    extra = [*(path for path in actual if path not in expected), *installed.unrestorable]
    return VerifyResult(
        key,
        target_path,
        changed=tuple(sorted(changed)),
        missing=tuple(sorted(missing)),
        extra=tuple(sorted(extra)),
    )
