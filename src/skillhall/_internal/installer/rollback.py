"""Undoing: a skill as it was before it was last added, updated or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.lock import parse_lock
from skillhall._internal.installer.transaction import EMPTY, changing, held
from skillhall._internal.skill.merge import FileState
from skillhall._internal.storage.history import Held
from skillhall.errors import Edited, NothingToUndo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.installer.lock import LockEntry
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.installer.transaction import Files, Work
    from skillhall._internal.storage.history import Change


class Past(NamedTuple):
    """A change that was made."""

    id: str
    verb: str
    time: str
    places: tuple[str, ...]


def past_changes(shelf: Shelf) -> list[Past]:
    """What can be taken back, newest first. Raises: OSError."""
    return [_past(change) for change in shelf.history.changes() if change.verb != "rollback"]


def undo(shelf: Shelf, name: str, *, force: bool = False) -> Past:
    """Take back the last change of a skill, folder and lock.

    What was edited since goes only by `force`. Raises: NothingToUndo, Edited, WouldLose, OSError.
    """
    with changing(shelf, "rollback") as work:
        changes = (one for one in shelf.history.changes() if _is_about(one, name))
        made = (one for one in changes if one.verb != "rollback" and _was_made(work, one))
        change = next(made, None)
        if change is None:
            raise NothingToUndo(name)
        if not force:
            _refuse_edited(work, change)
        _restore(work, change)
    shelf.history.drop(change.id)
    return _past(change)


def _past(change: Change) -> Past:
    return Past(change.id, change.verb, change.time, tuple(change.entries))


def _is_about(change: Change, name: str) -> bool:
    return any(name in (key, key.rpartition("/")[2]) for key in change.entries)


def _was_made(work: Work, change: Change) -> bool:
    """Whether it was done: a process may be killed between noting a change and making it."""
    return any(
        entry.before == entry.after or _digests(work, change, place) != entry.before
        for place, entry in change.entries.items()
    )


def _digests(work: Work, change: Change, place: str) -> Mapping[str, Held] | None:
    present = work.standing(next(iter(change.entries)), place)
    return None if present is None else held(present.files)


def _refuse_edited(work: Work, change: Change) -> None:
    for place, entry in change.entries.items():
        now, known = _digests(work, change, place), entry.after or {}
        if now is not None and now != entry.after:
            raise Edited(place, sorted(p for p in {*now, *known} if now.get(p) != known.get(p)))


def _restore(work: Work, change: Change) -> None:
    key, first = next(iter(change.entries.items()))
    places = {
        place: None if entry.before is None else _files(work.shelf, entry.before)
        for place, entry in change.entries.items()
    }
    text = (first.lock_before or "").encode(errors="surrogatepass")
    entry = parse_lock(text).entries.get(key) if text else None
    work.apply(key, places, entry, _upstream(work.shelf, entry) or places[key] or EMPTY)


def _upstream(shelf: Shelf, entry: LockEntry | None) -> Files | None:
    """What the source had, which may have been edited; `None` if it was not kept."""
    if entry is None:
        return None
    try:
        return _files(
            shelf, {file.path: Held(file.sha256, file.mode == "100755") for file in entry.files}
        )
    except NothingToUndo:
        return None


def _files(shelf: Shelf, before: Mapping[str, Held]) -> dict[str, FileState]:
    """Raises: NothingToUndo if contents were lost."""
    found = {path: shelf.contents.find(one.sha256) for path, one in before.items()}
    lost = [path for path, data in found.items() if data is None]
    if lost:
        raise NothingToUndo(lost[0])
    return {
        path: FileState(data, before[path].executable)
        for path, data in found.items()
        if data is not None
    }
