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
from skillhall._internal.installer.data_cleanup import clean_up_if_due
from skillhall._internal.installer.lock import (
    Lock,
    LockEntry,
    LockTarget,
    edit_lock,
    parse_target_path,
    render_lock,
)
from skillhall._internal.installer.npx_hashes import HashedFile
from skillhall._internal.installer.project import InstalledFiles, check_replaceable, read_installed
from skillhall._internal.installer.targets import is_agent_folder
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.sources.ref import parse_source_ref
from skillhall._internal.storage.history import HistoryChange, HistoryEntry, HistoryFile
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from skillhall._internal.fs.write import WritableFolder
    from skillhall._internal.installer.lock import LockEdit
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.merge import FileState
    from skillhall._internal.storage.history import Verb

    Files: TypeAlias = Mapping[str, FileState]

NO_FILES: Mapping[str, FileState] = MappingProxyType({})
_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_MAX_MERGE_BASE = 1024 * 1024  # bytes; larger texts are not merged


class _NpxLockChange(NamedTuple):
    """An entry for the lock of other tools; without an entry, the name is removed there."""

    name: str
    entry: LockEntry | None
    files: Files


@dataclass(slots=True)
class Transaction:
    """A shelf whose lock is held: what is put here is in the lock when the work is done."""

    project: Project
    verb: Verb
    lock_edit: LockEdit
    notes: list[str] = field(default_factory=list)
    _recorded_changes: list[HistoryChange] = field(default_factory=list)
    _undo_steps: list[Callable[[], None]] = field(default_factory=list)
    _pending_npx_changes: list[_NpxLockChange] = field(default_factory=list)

    @property
    def entries(self) -> dict[str, LockEntry]:
        """The lock's entries as they are by now."""
        return self.lock_edit.entries

    def apply(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        upstream: Files = NO_FILES,
    ) -> None:
        """Let the skill's folders hold these files or be gone, its links lead to the first of them,
        and the lock hold the entry. `upstream` is what the source had.

        Where a link should be and something else stands, that stays, unless it is in `places`.
        Raises: UnsafePath, UnsavedFilesError, NotASkill, OSError.
        """  # noqa: D205 - one sentence
        present = self.check_targets(key, files_by_target, entry)
        change = self._record_change(key, files_by_target, entry, present)
        self._recorded_changes += [change] if change else []
        done = len(self._undo_steps)
        try:
            entry = self._write_targets(key, files_by_target, entry, present)
        except BaseException:
            if self._roll_back_to(done) and change:
                self._drop_from_history(change)
            raise
        self._record_in_locks(key, entry, upstream)

    def _write_targets(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        present: Mapping[str, InstalledFiles | None],
    ) -> LockEntry | None:
        """Write folders and links; the entry with the targets that could be made."""
        before = self.entries.get(key)
        old, new = (
            before.get_link_paths() if before else [],
            entry.get_link_paths() if entry else [],
        )
        for place in old:
            if place not in new and self.project.is_link_to(place, key):
                text = os.readlink(self.project.path(place))
                self._write_target(place, None)
                self._undo_steps.append(partial(self._write_link, place, text))
        for place, files in reversed(list(files_by_target.items())):
            found = present[place]
            link = self._read_link(place) if found is None else None
            self._write_target(place, files)
            back = partial(self._write_target, place, None if found is None else found.files)
            self._undo_steps.append(partial(self._replace_with_link, place, link) if link else back)
        if entry is None:
            return None
        files = files_by_target.get(key) or NO_FILES
        return replace(
            entry, targets=tuple(self._link_or_copy(one, key, files) for one in entry.targets)
        )

    def roll_back(self) -> None:
        """Restore what the folders contained before the first change, as far as that is possible.

        What cannot be restored stays in the history.
        """
        if self._roll_back_to(0):
            for change in self._recorded_changes:
                self._drop_from_history(change)

    def _roll_back_to(self, step_count: int) -> bool:
        """Whether every step since then could be undone, the last one first."""
        try:
            while len(self._undo_steps) > step_count:
                self._undo_steps.pop()()
        except (OSError, SkillhallError):
            return False
        return True

    def update_npx_lock(self) -> None:
        """Bring the lock of other tools in line with what was changed. Raises: OSError."""
        for telling in self._pending_npx_changes:
            self._apply_npx_change(telling)

    def install(
        self, key: str, entry: LockEntry, files: Files, upstream: Files | None = None
    ) -> None:
        """The same files in all folders of a skill. Raises: UnsavedFilesError, OSError."""
        places = dict.fromkeys([key, *entry.get_copy_paths()], files)
        self.apply(key, places, entry, files if upstream is None else upstream)

    def remove(self, key: str) -> None:
        """Remove the skill, its copies and its links. Raises: UnsavedFilesError, OSError."""
        entry = self.entries.get(key)
        copies = entry.get_copy_paths() if entry else ()
        self.apply(key, dict.fromkeys([key, *copies], None), None)

    def check_targets(
        self, key: str, target_paths: Iterable[str], entry: LockEntry | None
    ) -> dict[str, InstalledFiles | None]:
        """What stands at the places, if they can be written to and nothing would be lost.

        Raises: UnsafePath, UnsavedFilesError, NotASkill, OSError.
        """
        target_paths = list(target_paths)
        for place in (*target_paths, *(entry.get_link_paths() if entry else ())):
            self.project.check_folder(parse_target_path(place).rpartition("/")[0])
        present = {place: self.read_target(key, place) for place in target_paths}
        for place, found in present.items():
            check_replaceable(place, found, is_skill=self._is_skills_folder(place))
        return present

    def _record_change(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        present: Mapping[str, InstalledFiles | None],
    ) -> HistoryChange | None:
        """Write down what is there and what will be. Raises: OSError."""
        before = self.entries.get(key)
        texts = [None if one is None else _render_entry(key, one) for one in (before, entry)]
        try:
            entries = {
                place: HistoryEntry(
                    self._store_files(None if (old := present[place]) is None else old.files),
                    None if files is None else to_history_files(files),
                    *(texts if place == key else (None, None)),
                )
                for place, files in files_by_target.items()
            }
            time = self.project.clock().isoformat(timespec="seconds")
            change = HistoryChange(secrets.token_hex(8), self.verb, time, entries)
            self.project.history.record(change)
        except OSError:
            if any(old is not None for old in present.values()):
                raise  # what could not be brought back is not replaced
            return None
        return change

    def read_target(self, key: str, target_path: str) -> InstalledFiles | None:
        """What stands at a place of the skill; a link to it is nothing of its own."""
        is_ours = target_path != key and self.project.is_link_to(target_path, key)
        return None if is_ours else read_installed(self.project, target_path)

    def _is_skills_folder(self, target_path: str) -> bool:
        """Whether only skills stand there: in an agent's folder, if that is no link."""
        folder = target_path.rpartition("/")[0]
        path = os.path.join(os.path.realpath(self.project.root), *folder.split("/"))
        is_itself = self.project.is_user or self.project.resolve_folder(folder) == path
        return is_itself and is_agent_folder(self.project, folder)

    def _drop_from_history(self, change: HistoryChange) -> None:
        with suppress(OSError):
            self.project.history.delete(change.id)

    def _store_files(self, files: Files | None) -> dict[str, HistoryFile] | None:
        if files is None:
            return None
        keep = self.project.content_store.put
        return {path: HistoryFile(keep(file.data), file.executable) for path, file in files.items()}

    def _write_target(self, target_path: str, files: Files | None) -> None:
        if files is None and not os.path.lexists(self.project.path(target_path)):
            return
        with self._open_parent(target_path) as (target, name):
            if files is None:
                if target.entry_kind(name) is not None:
                    target.remove_atomically(name)
                return
            written = {
                path: (file.data, _EXECUTABLE_MODE if file.executable else _FILE_MODE)
                for path, file in files.items()
            }
            if target.entry_kind(name) is None:
                target.create_folder(name, written)
            else:
                target.replace_folder(name, written)

    def _link_or_copy(self, target: LockTarget, key: str, files: Files) -> LockTarget:
        """The target, linked if it is a link; a copy where the system has no links."""
        if target.kind != "link":
            return target
        if self.read_target(key, target.path) is not None:
            self.notes.append(f"{target.path} stays as it is: it is no link to {key}")
            return target
        folder = os.path.realpath(os.path.dirname(self.project.path(target.path)))
        text = os.path.relpath(os.path.realpath(self.project.path(key)), folder)
        if self._read_link(target.path) is None:
            self._undo_steps.append(partial(self._write_target, target.path, None))
        try:
            self._write_link(target.path, text)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise
        else:
            return target
        self.notes.append(f"{target.path} is a copy: no link could be made there")
        self._write_target(target.path, files)
        return replace(target, kind="copy")

    def _read_link(self, target_path: str) -> str | None:
        """The text of the link at a place."""
        path = self.project.path(target_path)
        return os.readlink(path) if os.path.islink(path) else None

    def _write_link(self, target_path: str, destination: str) -> None:
        with self._open_parent(target_path) as (parent, name):
            parent.write_link(name, destination)

    def _replace_with_link(self, target_path: str, destination: str) -> None:
        self._write_target(target_path, None)
        self._write_link(target_path, destination)

    @contextmanager
    def _open_parent(self, target_path: str) -> Iterator[tuple[WritableFolder, str]]:
        folder, _, name = target_path.rpartition("/")
        with self.project.open_folder(folder) as target, self._lock_unless_held(folder, target):
            target.recover()
            yield target, name

    def _lock_unless_held(
        self, folder: str, target: WritableFolder
    ) -> AbstractContextManager[None]:
        """Keep others out of the folder; the lock's own one is kept already."""
        path = self.project.path(folder) if folder else self.project.root
        is_held = os.path.samefile(path, self.project.lock_folder)
        return nullcontext() if is_held else target.lock()

    def _record_in_locks(self, key: str, entry: LockEntry | None, upstream: Files) -> None:
        before = self.entries.get(key)
        name = (entry.name if entry else before.name if before else "") or key.rpartition("/")[2]
        if entry is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = entry
            self._store_merge_base(upstream)
        if is_agent_folder(self.project, key.rpartition("/")[0]):
            self._pending_npx_changes.append(_NpxLockChange(name, entry, upstream))
            if before and before.name and before.name != name:
                self._pending_npx_changes.append(_NpxLockChange(before.name, None, NO_FILES))

    def _store_merge_base(self, files: Files) -> None:
        """Keep what later edits will be told from; without it, an update asks more often."""
        with suppress(OSError):
            for file in files.values():
                if len(file.data) <= _MAX_MERGE_BASE:
                    self.project.content_store.put(file.data)

    def _apply_npx_change(self, change: _NpxLockChange) -> None:
        """Keep the other tools' lock in step; if that fails, the skill is there all the same."""
        try:
            outcome = self._write_npx_change(*change)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise
            self.notes.append(f"{self.project.npx_lock_path.name} could not be written")
        else:
            self.notes += [outcome.note] if outcome.note else []

    def _write_npx_change(
        self, name: str, entry: LockEntry | None, files: Files
    ) -> foreign_locks.NpxLockResult:
        place = self.project.npx_lock_path
        told = None if entry is None else _to_npx_entry(name, entry, files, place)
        if told is None:
            return foreign_locks.remove_entries(
                place, [name], is_locked=self._is_npx_folder_locked()
            )
        now = self.project.clock()
        return foreign_locks.upsert_entries(
            place, [told], now, create=True, is_locked=self._is_npx_folder_locked()
        )

    def _is_npx_folder_locked(self) -> bool:
        """Whether the folder of the other tools' lock is the one that we keep already."""
        ours, theirs = self.project.lock_folder, self.project.npx_lock_path.folder
        return os.path.realpath(theirs) == os.path.realpath(ours)


@contextmanager
def open_transaction(project: Project, verb: Verb) -> Iterator[Transaction]:
    """The shelf, kept from other processes; the lock is written also if a later skill fails.

    If the lock cannot be written, everything is as it was before.

    Raises: LockInvalid, NotAFile, OSError.
    """
    failure: Exception | None = None
    with edit_lock(project.lock_folder, project.lock_name) as edit:
        work, before = Transaction(project, verb, edit), dict(edit.entries)
        try:
            yield work
        except Exception as error:  # noqa: BLE001 - raised again below, when the lock is written
            failure = error
        try:
            edit.save()
        except BaseException:
            work.roll_back()
            raise
        work.update_npx_lock()
    if work.entries != before:
        clean_up_if_due(project.settings.data_directory)
    if failure is not None:
        raise failure


def _to_npx_entry(
    name: str, entry: LockEntry, files: Files, lock_path: foreign_locks.NpxLockPath
) -> foreign_locks.NpxEntry | None:
    contents = {path: HashedFile(file.data, file.executable) for path, file in files.items()}
    reference = parse_source_ref(entry.source, allow_loopback_http=True)
    return foreign_locks.build_npx_entry(
        name, reference, entry.path, contents, lock_path.lock_format
    )


def to_history_files(files: Files) -> dict[str, HistoryFile]:
    """The files by their digests."""
    return {
        path: HistoryFile(sha256_hex(file.data), file.executable) for path, file in files.items()
    }


def _render_entry(key: str, entry: LockEntry) -> str:
    return render_lock(Lock({key: entry})).decode()
