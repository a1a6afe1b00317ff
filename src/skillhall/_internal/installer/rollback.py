"""Undoing: a skill as it was before it was last added, updated or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import parse_lock
from skillhall._internal.installer.transaction import NO_FILES, open_transaction, to_history_files
from skillhall._internal.skill.merge import FileState
from skillhall._internal.storage.history import HistoryFile
from skillhall.errors import Edited, NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Project
    from skillhall._internal.installer.transaction import Files, Transaction
    from skillhall._internal.storage.history import HistoryChange


class PastChange(NamedTuple):
    """A change that was made."""

    id: str
    verb: str
    time: str
    paths: tuple[str, ...]


def list_changes(project: Project) -> list[PastChange]:
    """What can be taken back, newest first. Raises: OSError."""
    return [
        _to_past_change(change) for change in project.history.changes() if change.verb != "rollback"
    ]


def roll_back(project: Project, name: str, *, force: bool = False) -> PastChange:
    """Take back the last change of a skill, folder and lock.

    Local changes since then are lost only with `force`. Raises: InstallError, OSError.
    """
    with open_transaction(project, "rollback") as work:
        changes = (one for one in project.history.changes() if _affects_skill(one, name))
        made = (one for one in changes if one.verb != "rollback" and _was_applied(work, one))
        change = next(made, None)
        if change is None:
            raise NothingToUndo(name)
        if not force:
            _check_unedited(work, change)
        _apply_previous(work, change)
    project.history.delete(change.id)
    return _to_past_change(change)


def _to_past_change(change: HistoryChange) -> PastChange:
    return PastChange(change.id, change.verb, change.time, tuple(change.entries))


def _affects_skill(change: HistoryChange, name: str) -> bool:
    return any(name in (key, key.rpartition("/")[2]) for key in change.entries)


def _was_applied(transaction: Transaction, change: HistoryChange) -> bool:
    """Whether it was done: a process may be killed between noting a change and making it."""
    return any(
        entry.before == entry.after or _read_digests(transaction, change, place) != entry.before
        for place, entry in change.entries.items()
    )


def _read_digests(
    transaction: Transaction, change: HistoryChange, target_path: str
) -> Mapping[str, HistoryFile] | None:
    present = transaction.read_target(next(iter(change.entries)), target_path)
    return None if present is None else to_history_files(present.files)


def _check_unedited(transaction: Transaction, change: HistoryChange) -> None:
    for place, entry in change.entries.items():
        now, known = _read_digests(transaction, change, place), entry.after or {}
        if now is not None and now != entry.after:
            raise Edited(place, sorted(p for p in {*now, *known} if now.get(p) != known.get(p)))


def _apply_previous(transaction: Transaction, change: HistoryChange) -> None:
    key, first = next(iter(change.entries.items()))
    places = {
        place: None if entry.before is None else _load_files(transaction.project, entry.before)
        for place, entry in change.entries.items()
    }
    text = (first.lock_before or "").encode(errors="surrogatepass")
    entry = parse_lock(text).entries.get(key) if text else None
    transaction.apply(
        key, places, entry, _load_upstream(transaction.project, entry) or places[key] or NO_FILES
    )


def _load_upstream(project: Project, entry: LockEntry | None) -> Files | None:
    """What the source had, which may have been edited; `None` if it was not kept."""
    if entry is None:
        return None
    try:
        return _load_files(
            project,
            {file.path: HistoryFile(file.sha256, file.mode == "100755") for file in entry.files},
        )
    except NothingToUndo:
        return None


def _load_files(project: Project, before: Mapping[str, HistoryFile]) -> dict[str, FileState]:
    """Raises: NothingToUndo if contents were lost."""
    found = {path: project.content_store.find(one.sha256) for path, one in before.items()}
    lost = [path for path, data in found.items() if data is None]
    if lost:
        raise NothingToUndo(lost[0])
    return {
        path: FileState(data, before[path].executable)
        for path, data in found.items()
        if data is not None
    }
