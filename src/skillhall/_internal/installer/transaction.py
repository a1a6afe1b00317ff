"""Transactions: change folders, lock file and npx lock of a project together.

A change is recorded in the history before it is made. If a folder or the lock file cannot be
written, the folders are restored. If the process is killed, each folder is either old or new, and
the next change to the skill corrects the lock file.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.agent_folders import is_agent_folder
from skillhall._internal.installer.approvals import approve_skills, hash_states
from skillhall._internal.installer.data_cleanup import clean_up_if_due
from skillhall._internal.installer.lock import (
    Lock,
    LockEntry,
    LockTarget,
    edit_lock,
    parse_target_path,
    render_lock,
)
from skillhall._internal.installer.npx_lock import build_npx_entry, edit_npx_lock
from skillhall._internal.installer.project import (
    InstalledFiles,
    Project,
    check_replaceable,
    read_installed,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.storage.history import HistoryChange, HistoryEntry, HistoryFile, Verb
from skillhall.errors import SkillhallError

Files: TypeAlias = Mapping[str, FileState]
NO_FILES: Files = MappingProxyType({})
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_MAX_MERGE_BASE = 1024 * 1024  # bytes; larger files are not merged


class _NpxLockChange(NamedTuple):
    """Change to the npx lock; without an entry, the skill is removed."""

    name: str
    entry: LockEntry | None
    files: Files


@dataclass(slots=True)
class Transaction:
    """Transaction on a locked project; `open_transaction` saves the lock file."""

    project: Project
    verb: Verb
    entries: dict[str, LockEntry]  # of the lock file, including unsaved changes
    notes: list[str] = field(default_factory=list)
    _recorded_changes: list[HistoryChange] = field(default_factory=list)
    _undo_steps: list[Callable[[], None]] = field(default_factory=list)
    _pending_npx_changes: list[_NpxLockChange] = field(default_factory=list)
    _written_files: dict[str, Files] = field(default_factory=dict)  # by key

    def apply(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        upstream: Files = NO_FILES,
    ) -> None:
        """Write the folders and links of a skill, and set its entry in the lock file.

        A target whose files are `None` is removed; `upstream` has the files in the source. If
        something else is at the path of a link, it is left unchanged unless it is in
        `files_by_target`.
        Raises: UnsafePath, UnsavedFilesError, NotASkill, OSError.
        """
        installed = self.check_targets(key, files_by_target, entry)
        change = self._record_change(key, files_by_target, entry, installed)
        self._recorded_changes += [change] if change else []
        step_count = len(self._undo_steps)
        try:
            entry = self._write_targets(key, files_by_target, entry, installed)
        except BaseException:
            if self._roll_back_to(step_count) and change:
                self._drop_from_history(change)
            raise
        self._record_in_locks(key, entry, upstream)
        if written := files_by_target.get(key):
            self._written_files[key] = written

    def approve(self) -> None:
        """Approve the written skills, which the user has chosen. Failures only add a note."""
        skills = (
            (key, self.entries[key], hash_states(files))
            for key, files in self._written_files.items()
            if key in self.entries
        )
        self.notes += approve_skills(self.project, self.verb, skills)

    def _write_targets(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        installed: Mapping[str, InstalledFiles | None],
    ) -> LockEntry | None:
        """Write folders and links; return the entry with the targets as they were created."""
        before = self.entries.get(key)
        old_links = before.get_target_paths("link") if before else []
        new_links = entry.get_target_paths("link") if entry else []
        for path in old_links:
            if path not in new_links and self.project.is_link_to(path, key):
                destination = os.readlink(self.project.path(path))
                self._write_target(path, None)
                self._undo_steps.append(partial(self._write_link, path, destination))
        # The first copy, at `key`, comes last.
        for path, files in reversed(list(files_by_target.items())):
            old = installed[path]
            link = self._read_link(path) if old is None else None
            self._write_target(path, files)
            if link:  # steps are undone in reverse order
                self._undo_steps.append(partial(self._write_link, path, link))
            undo = partial(self._write_target, path, None if old is None else old.files)
            self._undo_steps.append(undo)
        if entry is None:
            return None
        files = files_by_target.get(key) or NO_FILES
        targets = tuple(self._link_or_copy(target, key, files) for target in entry.targets)
        return replace(entry, targets=targets)

    def roll_back(self) -> None:
        """Restore the folders as far as possible; failed steps stay in the history."""
        if self._roll_back_to(0):
            for change in self._recorded_changes:
                self._drop_from_history(change)

    def _roll_back_to(self, step_count: int) -> bool:
        """Undo all steps after the first `step_count`; return whether all succeeded."""
        try:
            while len(self._undo_steps) > step_count:
                self._undo_steps.pop()()
        except (OSError, SkillhallError):
            return False
        return True

    def update_npx_lock(self) -> None:
        """Apply the changes to the npx lock.

        Most failures only add a note, as the skills are installed anyway. Raises: OSError.
        """
        lock_path = self.project.npx_lock_path
        # If both lock files are in one folder, `edit_lock` has locked it.
        is_locked = os.path.realpath(lock_path.folder) == os.path.realpath(self.project.lock_folder)
        for name, entry, files in self._pending_npx_changes:
            npx_entry = None
            if entry is not None:
                reference = parse_source_ref(entry.source, allow_loopback_http=True)
                lock_format = lock_path.lock_format
                npx_entry = build_npx_entry(name, reference, entry.path, files, lock_format)
            try:
                changes, now = {name: npx_entry}, self.project.clock()
                note = edit_npx_lock(lock_path, changes, now, is_locked=is_locked).note
            except OSError as error:
                if error.errno in _DISK_ERRORS:
                    raise
                note = f"{lock_path.name} could not be written"
            self.notes += [note] if note else []

    def check_targets(
        self, key: str, target_paths: Iterable[str], entry: LockEntry | None
    ) -> dict[str, InstalledFiles | None]:
        """Read the targets and check that they can be written and restored.

        Raises: UnsafePath, UnsavedFilesError, NotASkill, OSError.
        """
        target_paths = list(target_paths)
        for path in (*target_paths, *(entry.get_target_paths("link") if entry else ())):
            self.project.check_folder(parse_target_path(path).rpartition("/")[0])
        installed = {path: self.read_target(key, path) for path in target_paths}
        for path, files in installed.items():
            folder = path.rpartition("/")[0]
            # An agent's folder contains only skills, but one behind a link may contain anything.
            is_skill = is_agent_folder(self.project, folder) and (
                self.project.is_user
                or self.project.resolve_folder(folder)
                == os.path.join(os.path.realpath(self.project.root), *folder.split("/"))
            )
            check_replaceable(path, files, is_skill=is_skill)
        return installed

    def _record_change(
        self,
        key: str,
        files_by_target: Mapping[str, Files | None],
        entry: LockEntry | None,
        installed: Mapping[str, InstalledFiles | None],
    ) -> HistoryChange | None:
        """Store the old files and record the change in the history. Raises: OSError."""
        put, entries = self.project.content_store.put, {}
        locks = [
            None if lock_entry is None else render_lock(Lock({key: lock_entry})).decode()
            for lock_entry in (self.entries.get(key), entry)
        ]
        try:
            for path, files in files_by_target.items():
                old = None
                if (found := installed[path]) is not None:
                    old = {
                        p: HistoryFile(put(f.data), f.executable) for p, f in found.files.items()
                    }
                new = None if files is None else to_history_files(files)
                entries[path] = HistoryEntry(old, new, *(locks if path == key else (None, None)))
            time = self.project.clock().isoformat(timespec="seconds")
            change = HistoryChange(secrets.token_hex(8), self.verb, time, entries)
            self.project.history.record(change)
        except OSError:
            # Without existing files there is nothing to restore, and the history is optional.
            if any(old is not None for old in installed.values()):
                raise
            return None
        return change

    def read_target(self, key: str, target_path: str) -> InstalledFiles | None:
        """Read a target; `None` if it does not exist or is a link to the first copy."""
        is_our_link = target_path != key and self.project.is_link_to(target_path, key)
        return None if is_our_link else read_installed(self.project, target_path)

    def _drop_from_history(self, change: HistoryChange) -> None:
        with suppress(OSError):
            self.project.history.delete(change.id)

    def _write_target(self, target_path: str, files: Files | None) -> None:
        if files is None and not os.path.lexists(self.project.path(target_path)):
            return
        with self._open_parent(target_path) as (target, name):
            if files is None:
                if target.entry_kind(name) is not None:
                    target.remove_atomically(name)
                return
            if target.entry_kind(name) is None:
                target.create_folder(name, to_written_files(files))
            else:
                target.replace_folder(name, to_written_files(files))

    def _link_or_copy(self, target: LockTarget, key: str, files: Files) -> LockTarget:
        """Create the link of a target; fall back to a copy if links are not supported."""
        if target.kind != "link":
            return target
        if self.read_target(key, target.path) is not None:
            self.notes.append(f"{target.path} is left unchanged: it is not a link to {key}")
            return target
        folder = os.path.realpath(os.path.dirname(self.project.path(target.path)))
        destination = os.path.relpath(os.path.realpath(self.project.path(key)), folder)
        if self._read_link(target.path) is None:
            self._undo_steps.append(partial(self._write_target, target.path, None))
        try:
            self._write_link(target.path, destination)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise
        else:
            return target
        self.notes.append(f"{target.path} is a copy: the link could not be created")
        self._write_target(target.path, files)
        return replace(target, kind="copy")

    def _read_link(self, target_path: str) -> str | None:
        path = self.project.path(target_path)
        return os.readlink(path) if os.path.islink(path) else None

    def _write_link(self, target_path: str, destination: str) -> None:
        with self._open_parent(target_path) as (parent, name):
            parent.write_link(name, destination)

    @contextmanager
    def _open_parent(self, target_path: str) -> Iterator[tuple[WritableFolder, str]]:
        folder, _, name = target_path.rpartition("/")
        with self.project.open_folder(folder) as target:
            # `edit_lock` has locked the folder of the lock file; its lock is not reentrant.
            path = self.project.path(folder) if folder else self.project.root
            is_held = os.path.samefile(path, self.project.lock_folder)
            with nullcontext() if is_held else target.lock():
                target.recover()
                yield target, name

    def _record_in_locks(self, key: str, entry: LockEntry | None, upstream: Files) -> None:
        before = self.entries.get(key)
        name = (entry.name if entry else before.name if before else "") or key.rpartition("/")[2]
        if entry is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = entry
            # Updates merge local edits against these files. Without them, more edits are conflicts.
            with suppress(OSError):
                for file in upstream.values():
                    if len(file.data) <= _MAX_MERGE_BASE:
                        self.project.content_store.put(file.data)
        if is_agent_folder(self.project, key.rpartition("/")[0]):
            self._pending_npx_changes.append(_NpxLockChange(name, entry, upstream))
            if before and before.name and before.name != name:
                self._pending_npx_changes.append(_NpxLockChange(before.name, None, NO_FILES))


@contextmanager
def open_transaction(project: Project, verb: Verb) -> Iterator[Transaction]:
    """Lock the project and save the lock file at the end, even if a later skill fails.

    If the lock file cannot be written, all changes are rolled back.
    Raises: LockInvalid, NotAFile, OSError.
    """
    failure: Exception | None = None
    with edit_lock(project.lock_folder, project.lock_name) as edit:
        transaction, before = Transaction(project, verb, edit.entries), dict(edit.entries)
        try:
            yield transaction
        except Exception as error:  # noqa: BLE001 - raised again after the lock file is written
            failure = error
        try:
            edit.save()
        except BaseException:
            transaction.roll_back()
            raise
        transaction.update_npx_lock()
    transaction.approve()
    if transaction.entries != before:
        clean_up_if_due(project.settings.data_directory)
    if failure is not None:
        raise failure


def to_written_files(files: Files) -> dict[str, tuple[bytes, int]]:
    """Return the content and mode to write for each file, by path."""
    return {
        path: (data, 0o755 if executable else 0o644) for path, (data, executable) in files.items()
    }


def to_history_files(files: Files) -> dict[str, HistoryFile]:
    """Return the files with digests instead of contents."""
    return {
        path: HistoryFile(sha256_hex(file.data), file.executable) for path, file in files.items()
    }
