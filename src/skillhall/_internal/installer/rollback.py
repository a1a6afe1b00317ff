"""Rollback of the last change to an installed skill."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from skillhall._internal.installer.lock import parse_lock
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.transaction import (
    NO_FILES,
    Transaction,
    open_transaction,
    to_history_files,
)
from skillhall._internal.skill.merge import FileState
from skillhall._internal.storage.history import HistoryChange, HistoryFile
from skillhall.errors import Edited, NothingToUndo


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change in the history.

    >>> installer = Installer.project()
    >>> report = installer.add("./skills", skills=["pdf-tools"])
    >>> installer.rollback("pdf-tools").verb
    'add'
    """

    id: str
    verb: str
    time: str
    paths: tuple[str, ...]


def list_changes(project: Project) -> list[Change]:
    """Return the changes that can be rolled back, newest first. Raises: OSError."""
    changes = project.history.changes()
    return [_to_past_change(change) for change in changes if change.verb != "rollback"]


def roll_back(project: Project, name: str, *, force: bool = False) -> Change:
    """Roll back the last change to a skill, in folders and lock files.

    Later edits are overwritten only with `force`.
    Raises: NothingToUndo, Edited, UnsavedFilesError, OSError.
    """
    with open_transaction(project, "rollback") as transaction:
        applied = (
            change
            for change in project.history.changes()
            if any(name in (key, key.rpartition("/")[2]) for key in change.entries)
            and change.verb != "rollback"
            # A process may be killed after it recorded a change and before it made it.
            and any(
                entry.before == entry.after
                or _read_digests(transaction, change, path) != entry.before
                for path, entry in change.entries.items()
            )
        )
        change = next(applied, None)
        if change is None:
            raise NothingToUndo(name)
        for path, entry in change.entries.items() if not force else ():
            now, known = _read_digests(transaction, change, path), entry.after or {}
            if now is not None and now != entry.after:
                raise Edited(path, sorted(p for p in {*now, *known} if now.get(p) != known.get(p)))
        _apply_previous(transaction, change)
    project.history.delete(change.id)
    return _to_past_change(change)


def _to_past_change(change: HistoryChange) -> Change:
    return Change(id=change.id, verb=change.verb, time=change.time, paths=tuple(change.entries))


def _read_digests(
    transaction: Transaction, change: HistoryChange, target_path: str
) -> Mapping[str, HistoryFile] | None:
    installed = transaction.read_target(next(iter(change.entries)), target_path)
    return None if installed is None else to_history_files(installed.files)


def _apply_previous(transaction: Transaction, change: HistoryChange) -> None:
    key, first = next(iter(change.entries.items()))
    project = transaction.project
    targets = {
        path: None if entry.before is None else _load_files(project, entry.before)
        for path, entry in change.entries.items()
    }
    lock = (first.lock_before or "").encode(errors="surrogatepass")
    entry = parse_lock(lock).entries.get(key) if lock else None
    upstream = targets[key] or NO_FILES
    if entry is not None:
        files = {file.path: HistoryFile(file.sha256, file.mode == "100755") for file in entry.files}
        with suppress(NothingToUndo):  # the unedited files of the source may not be stored
            upstream = _load_files(project, files) or upstream
    transaction.apply(key, targets, entry, upstream)


def _load_files(project: Project, files: Mapping[str, HistoryFile]) -> dict[str, FileState]:
    """Load contents by digest. Raises: NothingToUndo if one is not stored."""
    states = {}
    for path, file in files.items():
        data = project.content_store.find(file.sha256)
        if data is None:
            raise NothingToUndo(path)
        states[path] = FileState(data, file.executable)
    return states
