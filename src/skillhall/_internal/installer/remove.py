"""Removing skills from a shelf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.installer.agent_folders import UNIVERSAL_FOLDER
from skillhall._internal.installer.lock import find_entry_keys, parse_target_path
from skillhall._internal.installer.project import read_installed
from skillhall._internal.installer.transaction import open_transaction
from skillhall._internal.installer.verify import verify_entry
from skillhall.errors import Edited, NotInstalledError, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.installer.project import Project
    from skillhall._internal.installer.transaction import Transaction


def remove(project: Project, names: Iterable[str], *, force: bool = False) -> list[str]:
    """Remove skills with their copies and links; the keys of what was removed.

    One that was edited, or that is in no lock, goes only by `force`; it can be brought back.
    Raises: SkillNotFound, UnsafePath, InstallError, NotASkill, OSError.
    """
    with open_transaction(project, "remove") as work:
        found = [key for name in names for key in _find_keys(work, name, force=force)]
        keys = list(dict.fromkeys(found))
        if not force:
            for key in keys:
                _check_unedited(work, key)
        for key in keys:
            work.remove(key)
    return keys


def _find_keys(transaction: Transaction, name: str, *, force: bool) -> list[str]:
    try:
        return find_entry_keys(transaction.entries, [name])
    except SkillNotFound:
        key = parse_target_path(name if "/" in name else f"{UNIVERSAL_FOLDER}/{name}")
        if read_installed(transaction.project, key) is None:
            raise
        if not force:
            raise NotInstalledError(key) from None
        return [key]


def _check_unedited(transaction: Transaction, key: str) -> None:
    """Raises: Edited."""
    links = transaction.entries[key].get_link_paths()  # what stands there instead is not removed
    for place in verify_entry(transaction.project, key, transaction.entries[key]):
        if place.place not in links and (place.changed or place.extra):
            raise Edited(place.place, [*place.changed, *place.extra])
