"""Undoable changes to user skills: edits, imports and deletions.

A change is recorded before it is made, with the bytes that it replaces. A change to a skill with
links, or with files that exceed the limits, is made but cannot be undone.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.data_cleanup import clean_up_if_due
from skillhall._internal.installer.install import build_bundle
from skillhall._internal.installer.install_rules import NO_RULES, InstallRules
from skillhall._internal.skill.autofix import autofix
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.lossless_editor import edit_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill_store.input_checks import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SkillSummary,
    find_skill_md,
    prepare_bundles,
    read_files,
)
from skillhall._internal.skill_store.store import WRITTEN_HERE, ImportOrigin, bind_actor
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History, HistoryChange, HistoryEntry, HistoryFile
from skillhall.errors import NothingToUndo, SkillhallError, SkillNotFound, StaleVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.lossless_editor import SkillText
    from skillhall._internal.skill_store.file_changes import ChangeFiles
    from skillhall._internal.skill_store.store import ImportReport, SkillFiles, SkillStore
    from skillhall._internal.storage.history import Verb

    _StoredFiles: TypeAlias = Mapping[str, HistoryFile] | None
    RecordChange: TypeAlias = Callable[[Verb, Mapping[str, tuple[_StoredFiles, _StoredFiles]]], str]

_HISTORY_SCOPE = "local"  # separate from skills installed in the same project with a lock file


def get_history_scope(location: str) -> str:
    """Return the history scope of the skill store at `location`."""
    return os.path.join(location, _HISTORY_SCOPE)


class SkillChangeResult(NamedTuple):
    """Changed skill, and the id of the change, or "" if it cannot be undone."""

    skill: SkillSummary
    change_id: str


class RecentChange(NamedTuple):
    """A recorded change."""

    id: str
    verb: Verb
    time: str
    skill_ids: tuple[str, ...]
    is_latest: bool  # no newer change is about one of its skills
    actor: str  # who made it; "" if that was not recorded


@dataclass(frozen=True, slots=True)
class SkillStoreChanges:
    """Undoable operations on user skills, by an actor, recorded in the audit log.

    If `data_directory` is empty, nothing can be undone.
    """

    store: SkillStore
    data_directory: str
    actor: Actor
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def edit(
        self, identity: str, text: SkillText, digest: str, *, is_repaired: bool = False
    ) -> SkillChangeResult:
        """Edit the SKILL.md of a user skill if `digest` is its current digest.

        With `is_repaired`, the edit starts from the file as `autofix` repairs it.
        Raises: as `change_files`, EditRefused.
        """

        def edit_text(files: SkillFiles) -> SkillFiles:
            path = next(filter(is_skill_md, sorted(files)))
            data, mode = files[path]
            source = autofix(data, identity).data if is_repaired else data
            return {**files, path: (edit_skill_md(source, text), mode)}

        return self.change_files(identity, edit_text, digest)

    def change_files(self, identity: str, change: ChangeFiles, digest: str) -> SkillChangeResult:
        """Change the files of a user skill if `digest` is its current digest.

        Raises: SkillNotFound, StaleVersionError, SkillRejected, UnsafePath, OSError, and errors
        from `change`.
        """
        results: list[SkillChangeResult] = []

        def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            bundle = present[identity]
            if bundle is None:
                raise SkillNotFound(identity)
            if (current := bundle.digest()) != digest:
                raise StaleVersionError(identity, current)
            find_skill_md(bundle)  # raises an error if there is none
            files = read_files(bundle)
            changed = change(files)
            states = {
                path: FileState(data, mode == EXECUTABLE_MODE)
                for path, (data, mode) in changed.items()
            }
            edited = prepare_bundles([build_bundle(identity, states)], identity)[0]
            before = self._store_bundle(bundle)
            after = before and self._store_files(states)
            change_id = record("update", {identity: (before if after else None, after)})
            results.append(SkillChangeResult(edited.skill, change_id))
            return {identity: changed}

        with self._record_change() as record:
            self._act("skill.edit").rewrite([identity], compute_files)
        return results[-1]

    def import_(
        self,
        bundles: Sequence[Bundle],
        identity: str | None = None,
        provenance: ImportOrigin = WRITTEN_HERE,
        *,
        replace: bool = False,
        rules: InstallRules = NO_RULES,
    ) -> tuple[ImportReport, str]:
        """Import bundles as user skills; return the report and the change's id.

        The id is "" if the import cannot be undone. Raises: as `SkillStore.import_`.
        """
        prepared = prepare_bundles(bundles, identity, rules)
        entries = {}
        for item, bundle in zip(prepared, bundles, strict=True):
            present = self.store.files(item.skill.id)
            before = None if present is None else self._store_bundle(present)
            # A skill that cannot be stored completely cannot be restored: record nothing.
            is_lost = present is not None and before is None
            entries[item.skill.id] = before, None if is_lost else self._store_bundle(bundle)
        with self._record_change() as record:
            change = record("update" if replace else "add", entries)
            store = bind_actor(self.store, self.actor, "skill.import", provenance)
            report = store.import_(bundles, identity, replace=replace, rules=rules)
        return report, change

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Delete a user skill; return the change's id, or "" if it cannot be undone.

        Raises: as `SkillStore.delete`.
        """
        present = self.store.files(identity)
        before = None if present is None else self._store_bundle(present)
        with self._record_change() as record:
            change = record("remove", {identity: (before, None)})
            self._act("skill.delete").delete(identity, shadowed=shadowed)
        return change

    def delete_all(self, ids: Sequence[str]) -> str:
        """Delete several user skills in one step; return the change's id, as `delete`.

        Raises: SkillNotFound, UnsafePath, OSError, DatabaseUnavailable.
        """
        changes: list[str] = []

        def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            entries: dict[str, tuple[_StoredFiles, _StoredFiles]] = {}
            for identity in ids:
                bundle = present[identity]
                if bundle is None:
                    raise SkillNotFound(identity)
                entries[identity] = self._store_bundle(bundle), None
            changes.append(record("remove", entries))
            return dict.fromkeys(ids)

        with self._record_change() as record:
            self._act("skill.delete").rewrite(ids, compute_files)
        return changes[-1]

    def restore(self, identity: str, files: SkillFiles) -> SkillChangeResult:
        """Write the files of an earlier version of a user skill, even if it was deleted.

        Raises: SkillRejected, UnsafePath, OSError, DatabaseUnavailable, DatabaseFull.
        """
        states = {
            path: FileState(data, mode == EXECUTABLE_MODE) for path, (data, mode) in files.items()
        }
        restored = prepare_bundles([build_bundle(identity, states)], identity)[0]
        changes: list[str] = []

        def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            bundle = present[identity]
            before = None if bundle is None else self._store_bundle(bundle)
            is_lost = bundle is not None and before is None
            entry = before, None if is_lost else self._store_files(states)
            changes.append(record("add" if bundle is None else "update", {identity: entry}))
            return {identity: files}

        with self._record_change() as record:
            self._act("version.restore").rewrite([identity], compute_files)
        return SkillChangeResult(restored.skill, changes[-1])

    def can_undo(self, identity: str) -> bool:
        """Whether the skill exists and a change to it could be undone."""
        present = self.store.files(identity)
        return bool(self.data_directory) and present is not None and not present.findings

    def list_recent(self) -> tuple[RecentChange, ...]:
        """Return the recorded changes, newest first. Raises: OSError."""
        if not self.data_directory:
            return ()
        recent: list[RecentChange] = []
        newer: set[str] = set()
        for change in self._open_history().changes():
            ids = tuple(change.entries)
            is_latest = newer.isdisjoint(ids)
            recent.append(
                RecentChange(change.id, change.verb, change.time, ids, is_latest, change.actor)
            )
            newer.update(ids)
        return tuple(recent)

    def undo(self, change_id: str) -> HistoryChange:
        """Undo a change and return it; its entries are keyed by skill id.

        Raises: NothingToUndo, StaleVersionError, UnsafePath, OSError, DatabaseUnavailable.
        """
        history = self._open_history()
        change = next((item for item in history.changes() if item.id == change_id), None)
        if change is None:
            raise NothingToUndo(change_id)
        restored = {key: self._load_files(key, entry) for key, entry in change.entries.items()}

        def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            for key, entry in change.entries.items():
                bundle = present[key]
                stored = None if bundle is None else self._store_bundle(bundle)
                if (bundle is None) != (entry.after is None) or stored != entry.after:
                    raise StaleVersionError(key, bundle.digest() if bundle else "")
            return restored

        self._act("skill.undo").rewrite([*change.entries], compute_files)
        history.delete(change_id)
        return change

    def add(self, identity: str, text: SkillText) -> SkillSummary:
        """Create a user skill. Raises: as `SkillStore.add`."""
        return self._act("skill.add").add(identity, *text)

    def _act(self, action: str) -> SkillStore:
        return bind_actor(self.store, self.actor, action)

    def _open_history(self) -> History:
        return History(self.data_directory, get_history_scope(self.store.location))

    @contextmanager
    def _record_change(self) -> Iterator[RecordChange]:
        """Yield a function that records a change; delete the record if the block fails.

        A transaction may run twice, so calling the function again replaces its earlier record.
        """
        change_id, is_recorded = secrets.token_hex(8), False

        def record(verb: Verb, entries: Mapping[str, tuple[_StoredFiles, _StoredFiles]]) -> str:
            nonlocal is_recorded
            if is_recorded:
                self._open_history().delete(change_id)
                is_recorded = False
            # (None, None) means that the files could not be stored: the change cannot be undone.
            if not self.data_directory or any(entry == (None, None) for entry in entries.values()):
                return ""
            changes = {key: HistoryEntry(before, after) for key, (before, after) in entries.items()}
            time = self.clock().isoformat(timespec="seconds")
            change = HistoryChange(change_id, verb, time, changes, self.actor.name)
            self._open_history().record(change)
            is_recorded = True
            return change_id

        try:
            yield record
        except BaseException:
            if is_recorded:
                self._open_history().delete(change_id)
            raise
        if self.data_directory:
            clean_up_if_due(self.data_directory)

    def _store_bundle(self, bundle: Bundle) -> dict[str, HistoryFile] | None:
        """Store the files of a bundle; None if some of them cannot be stored."""
        if not self.data_directory or bundle.findings:
            return None
        try:
            files = {path: FileState(f.read(), f.executable) for path, f in bundle.files.items()}
        except SkillhallError:
            return None
        return self._store_files(files)

    def _store_files(self, files: Mapping[str, FileState]) -> dict[str, HistoryFile] | None:
        """Store files in memory; None if some of them cannot be stored."""
        store = ContentStore(self.data_directory)
        try:
            return {
                path: HistoryFile(store.put(data), executable)
                for path, (data, executable) in files.items()
            }
        except SkillhallError:
            return None

    def _load_files(self, key: str, entry: HistoryEntry) -> dict[str, tuple[bytes, int]] | None:
        """Load the files that a change replaced; None if it added the skill.

        Raises: NothingToUndo if a file is no longer stored.
        """
        if entry.before is None:
            return None
        files = {}
        for path, file in entry.before.items():
            data = ContentStore(self.data_directory).find(file.sha256)
            if data is None:
                raise NothingToUndo(key)
            files[path] = data, EXECUTABLE_MODE if file.executable else FILE_MODE
        return files
