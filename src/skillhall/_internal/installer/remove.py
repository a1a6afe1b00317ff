"""Removal of installed skills."""

from __future__ import annotations

from collections.abc import Iterable

from skillhall._internal.installer.agent_folders import UNIVERSAL_FOLDER
from skillhall._internal.installer.lock import find_entry_keys, parse_target_path
from skillhall._internal.installer.project import Project, read_installed
from skillhall._internal.installer.transaction import Transaction, open_transaction
from skillhall._internal.installer.verify import verify_entry
from skillhall.errors import Edited, NotInstalledError, SkillNotFound


def remove(project: Project, names: Iterable[str], *, force: bool = False) -> list[str]:
    """Remove skills with their copies and links, and return their keys.

    Skills that were edited or are not in the lock file need `force`. A removal can be rolled back.
    Raises: SkillNotFound, UnsafePath, InstallError, NotASkill, OSError.
    """
    with open_transaction(project, "remove") as transaction:
        matches = (key for name in names for key in _find_keys(transaction, name, force=force))
        keys = list(dict.fromkeys(matches))
        for key in keys if not force else ():
            locked = transaction.entries[key]
            # Anything that has replaced a link is not removed, so it need not be checked.
            links = locked.get_target_paths("link")
            for target in verify_entry(project, key, locked):
                if target.place not in links and (target.changed or target.extra):
                    raise Edited(target.place, [*target.changed, *target.extra])
        for key in keys:
            entry = transaction.entries.get(key)
            copies = entry.get_target_paths("copy") if entry else ()
            transaction.apply(key, dict.fromkeys([key, *copies], None), None)
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
