"""Changing a shelf: folders, lock and the other tools' lock together, with a way back.

A change is written down before it is made. If a folder or the lock cannot be written, the folders
get back what they contained. A process that is killed leaves each folder old or new; a lock that it
did not get to is set right by the next change of that skill.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer import npx_lock as foreign_locks
from skillhall._internal.installer.data_cleanup import sweep_when_due
from skillhall._internal.installer.lock import (
    Lock,
    LockEntry,
    Target,
    changing_lock,
    place_of,
    render_lock,
)
from skillhall._internal.installer.npx_hashes import Content
from skillhall._internal.installer.project import Installed, read_installed, refuse_loss
from skillhall._internal.installer.targets import is_agents_folder
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.sources.ref import parse_reference
from skillhall._internal.storage.history import Change, Entry, Held
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from skillhall._internal.fs.write import WritableFolder
    from skillhall._internal.installer.lock import LockEdit
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.skill.merge import FileState
    from skillhall._internal.storage.history import Verb

    Files: TypeAlias = Mapping[str, FileState]

EMPTY: Mapping[str, FileState] = MappingProxyType({})
_FILE, _PROGRAM = 0o644, 0o755
_DISK_FAILED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_MAX_BASE = 1024 * 1024  # bytes; larger texts are not merged


class _Telling(NamedTuple):
    """An entry for the lock of other tools; without an entry, the name is removed there."""

    name: str
    entry: LockEntry | None
    files: Files


@dataclass(slots=True)
class Work:
    """A shelf whose lock is held: what is put here is in the lock when the work is done."""

    shelf: Shelf
    verb: Verb
    edit: LockEdit
    notes: list[str] = field(default_factory=list)
    _made_changes: list[Change] = field(default_factory=list)
    _steps_back: list[Callable[[], None]] = field(default_factory=list)
    _untold: list[_Telling] = field(default_factory=list)

    @property
    def entries(self) -> dict[str, LockEntry]:
        """The lock's entries as they are by now."""
        return self.edit.entries

    def apply(
        self,
        key: str,
        places: Mapping[str, Files | None],
        entry: LockEntry | None,
        upstream: Files = EMPTY,
    ) -> None:
        """Let the skill's folders hold these files or be gone, its links lead to the first of them,
        and the lock hold the entry. `upstream` is what the source had.

        Where a link should be and something else stands, that stays, unless it is in `places`.
        Raises: UnsafePath, WouldLose, NotASkill, OSError.
        """  # noqa: D205 - one sentence
        present = self.check(key, places, entry)
        change = self._record(key, places, entry, present)
        self._made_changes += [change] if change else []
        done = len(self._steps_back)
        try:
            entry = self._change_folders(key, places, entry, present)
        except BaseException:
            if self._step_back(done) and change:
                self._forget(change)
            raise
        self._note_in_locks(key, entry, upstream)

    def _change_folders(
        self,
        key: str,
        places: Mapping[str, Files | None],
        entry: LockEntry | None,
        present: Mapping[str, Installed | None],
    ) -> LockEntry | None:
        """Write folders and links; the entry with the targets that could be made."""
        before = self.entries.get(key)
        old, new = before.links() if before else [], entry.links() if entry else []
        for place in old:
            if place not in new and self.shelf.leads_to(place, key):
                text = os.readlink(self.shelf.path(place))
                self._write(place, None)
                self._steps_back.append(partial(self._link, place, text))
        for place, files in reversed(list(places.items())):
            found = present[place]
            link = self._link_at(place) if found is None else None
            self._write(place, files)
            back = partial(self._write, place, None if found is None else found.files)
            self._steps_back.append(partial(self._relink, place, link) if link else back)
        if entry is None:
            return None
        files = places.get(key) or EMPTY
        return replace(entry, targets=tuple(self._made(one, key, files) for one in entry.targets))

    def undo_all(self) -> None:
        """Restore what the folders contained before the first change, as far as that is possible.

        What cannot be restored stays in the history.
        """
        if self._step_back(0):
            for change in self._made_changes:
                self._forget(change)

    def _step_back(self, to: int) -> bool:
        """Whether every step since then could be undone, the last one first."""
        try:
            while len(self._steps_back) > to:
                self._steps_back.pop()()
        except (OSError, SkillhallError):
            return False
        return True

    def tell_others(self) -> None:
        """Bring the lock of other tools in line with what was changed. Raises: OSError."""
        for telling in self._untold:
            self._tell(telling)

    def put(self, key: str, entry: LockEntry, files: Files, upstream: Files | None = None) -> None:
        """The same files in all folders of a skill. Raises: WouldLose, OSError."""
        places = dict.fromkeys([key, *entry.copies()], files)
        self.apply(key, places, entry, files if upstream is None else upstream)

    def take_away(self, key: str) -> None:
        """Remove the skill, its copies and its links. Raises: WouldLose, OSError."""
        entry = self.entries.get(key)
        copies = entry.copies() if entry else ()
        self.apply(key, dict.fromkeys([key, *copies], None), None)

    def check(
        self, key: str, places: Iterable[str], entry: LockEntry | None
    ) -> dict[str, Installed | None]:
        """What stands at the places, if they can be written to and nothing would be lost.

        Raises: UnsafePath, WouldLose, NotASkill, OSError.
        """
        places = list(places)
        for place in (*places, *(entry.links() if entry else ())):
            self.shelf.check(place_of(place).rpartition("/")[0])
        present = {place: self.standing(key, place) for place in places}
        for place, found in present.items():
            refuse_loss(place, found, is_skill=self._is_for_skills(place))
        return present

    def _record(
        self,
        key: str,
        places: Mapping[str, Files | None],
        entry: LockEntry | None,
        present: Mapping[str, Installed | None],
    ) -> Change | None:
        """Write down what is there and what will be. Raises: OSError."""
        before = self.entries.get(key)
        texts = [None if one is None else _lock_text(key, one) for one in (before, entry)]
        try:
            entries = {
                place: Entry(
                    self._kept(None if (old := present[place]) is None else old.files),
                    None if files is None else held(files),
                    *(texts if place == key else (None, None)),
                )
                for place, files in places.items()
            }
            time = self.shelf.clock().isoformat(timespec="seconds")
            change = Change(secrets.token_hex(8), self.verb, time, entries)
            self.shelf.history.record(change)
        except OSError:
            if any(old is not None for old in present.values()):
                raise  # what could not be brought back is not replaced
            return None
        return change

    def standing(self, key: str, place: str) -> Installed | None:
        """What stands at a place of the skill; a link to it is nothing of its own."""
        is_ours = place != key and self.shelf.leads_to(place, key)
        return None if is_ours else read_installed(self.shelf, place)

    def _is_for_skills(self, place: str) -> bool:
        """Whether only skills stand there: in an agent's folder, if that is no link."""
        folder = place.rpartition("/")[0]
        path = os.path.join(os.path.realpath(self.shelf.root), *folder.split("/"))
        is_itself = self.shelf.is_user or self.shelf.real_folder(folder) == path
        return is_itself and is_agents_folder(self.shelf, folder)

    def _forget(self, change: Change) -> None:
        with suppress(OSError):
            self.shelf.history.drop(change.id)

    def _kept(self, files: Files | None) -> dict[str, Held] | None:
        if files is None:
            return None
        keep = self.shelf.contents.keep
        return {path: Held(keep(file.data), file.executable) for path, file in files.items()}

    def _write(self, place: str, files: Files | None) -> None:
        if files is None and not os.path.lexists(self.shelf.path(place)):
            return
        with self._opened(place) as (target, name):
            if files is None:
                if target.kind(name) is not None:
                    target.discard(name)
                return
            written = {
                path: (file.data, _PROGRAM if file.executable else _FILE)
                for path, file in files.items()
            }
            if target.kind(name) is None:
                target.put_folder(name, written)
            else:
                target.swap_folder(name, written)

    def _made(self, target: Target, key: str, files: Files) -> Target:
        """The target, linked if it is a link; a copy where the system has no links."""
        if target.kind != "link":
            return target
        if self.standing(key, target.path) is not None:
            self.notes.append(f"{target.path} stays as it is: it is no link to {key}")
            return target
        folder = os.path.realpath(os.path.dirname(self.shelf.path(target.path)))
        text = os.path.relpath(os.path.realpath(self.shelf.path(key)), folder)
        if self._link_at(target.path) is None:
            self._steps_back.append(partial(self._write, target.path, None))
        try:
            self._link(target.path, text)
        except OSError as error:
            if error.errno in _DISK_FAILED:
                raise
        else:
            return target
        self.notes.append(f"{target.path} is a copy: no link could be made there")
        self._write(target.path, files)
        return replace(target, kind="copy")

    def _link_at(self, place: str) -> str | None:
        """The text of the link at a place."""
        path = self.shelf.path(place)
        return os.readlink(path) if os.path.islink(path) else None

    def _link(self, place: str, text: str) -> None:
        with self._opened(place) as (parent, name):
            parent.put_link(name, text)

    def _relink(self, place: str, text: str) -> None:
        self._write(place, None)
        self._link(place, text)

    @contextmanager
    def _opened(self, place: str) -> Iterator[tuple[WritableFolder, str]]:
        folder, _, name = place.rpartition("/")
        with self.shelf.opened(folder) as target, self._alone(folder, target):
            target.recover()
            yield target, name

    def _alone(self, folder: str, target: WritableFolder) -> AbstractContextManager[None]:
        """Keep others out of the folder; the lock's own one is kept already."""
        path = self.shelf.path(folder) if folder else self.shelf.root
        is_held = os.path.samefile(path, self.shelf.lock_folder)
        return nullcontext() if is_held else target.locked()

    def _note_in_locks(self, key: str, entry: LockEntry | None, upstream: Files) -> None:
        before = self.entries.get(key)
        name = (entry.name if entry else before.name if before else "") or key.rpartition("/")[2]
        if entry is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = entry
            self._keep_base(upstream)
        if is_agents_folder(self.shelf, key.rpartition("/")[0]):
            self._untold.append(_Telling(name, entry, upstream))
            if before and before.name and before.name != name:
                self._untold.append(_Telling(before.name, None, EMPTY))

    def _keep_base(self, files: Files) -> None:
        """Keep what later edits will be told from; without it, an update asks more often."""
        with suppress(OSError):
            for file in files.values():
                if len(file.data) <= _MAX_BASE:
                    self.shelf.contents.keep(file.data)

    def _tell(self, telling: _Telling) -> None:
        """Keep the other tools' lock in step; if that fails, the skill is there all the same."""
        try:
            outcome = self._told_others(*telling)
        except OSError as error:
            if error.errno in _DISK_FAILED:
                raise
            self.notes.append(f"{self.shelf.foreign.name} could not be written")
        else:
            self.notes += [outcome.note] if outcome.note else []

    def _told_others(
        self, name: str, entry: LockEntry | None, files: Files
    ) -> foreign_locks.Outcome:
        place = self.shelf.foreign
        told = None if entry is None else _in_their_words(name, entry, files, place)
        if told is None:
            return foreign_locks.remove(place, [name], held=self._held())
        now = self.shelf.clock()
        return foreign_locks.upsert(place, [told], now, create=True, held=self._held())

    def _held(self) -> bool:
        """Whether the folder of the other tools' lock is the one that we keep already."""
        ours, theirs = self.shelf.lock_folder, self.shelf.foreign.folder
        return os.path.realpath(theirs) == os.path.realpath(ours)


@contextmanager
def changing(shelf: Shelf, verb: Verb) -> Iterator[Work]:
    """The shelf, kept from other processes; the lock is written also if a later skill fails.

    If the lock cannot be written, everything is as it was before.

    Raises: LockInvalid, NotAFile, OSError.
    """
    failure: Exception | None = None
    with changing_lock(shelf.lock_folder, shelf.lock_name) as edit:
        work, before = Work(shelf, verb, edit), dict(edit.entries)
        try:
            yield work
        except Exception as error:  # noqa: BLE001 - raised again below, when the lock is written
            failure = error
        try:
            edit.save()
        except BaseException:
            work.undo_all()
            raise
        work.tell_others()
    if work.entries != before:
        sweep_when_due(shelf.settings.data_directory)
    if failure is not None:
        raise failure


def _in_their_words(
    name: str, entry: LockEntry, files: Files, place: foreign_locks.ForeignPlace
) -> foreign_locks.ForeignEntry | None:
    contents = {path: Content(file.data, file.executable) for path, file in files.items()}
    reference = parse_reference(entry.source, loopback_http=True)
    return foreign_locks.foreign_entry(name, reference, entry.path, contents, place.layout)


def held(files: Files) -> dict[str, Held]:
    """The files by their digests."""
    return {path: Held(sha256_of(file.data), file.executable) for path, file in files.items()}


def _lock_text(key: str, entry: LockEntry) -> str:
    return render_lock(Lock({key: entry})).decode()
