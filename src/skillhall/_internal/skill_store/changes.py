"""Changes of user skills that can be taken back: edits, imports and deletions.

Each is written down before it is made, with the bytes that it replaces. One that would lose what
cannot be kept, as links and files beyond the limits, is made without a way back.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.data_cleanup import clean_up_if_due
from skillhall._internal.installer.preflight import build_bundle, compute_bundle_digest
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.skill.edit import edit_skill_md
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill_store.input_checks import StoredSkill, find_skill_md, prepare_bundles
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History, HistoryChange, HistoryEntry, HistoryFile
from skillhall.errors import (
    NothingToUndo,
    SkillhallError,
    SkillNotFound,
    StaleVersionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.edit import SkillText
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.store import SkillFiles, SkillStore
    from skillhall._internal.storage.history import Verb

    _StoredFiles: TypeAlias = Mapping[str, HistoryFile] | None
    RecordChange: TypeAlias = Callable[[Verb, Mapping[str, tuple[_StoredFiles, _StoredFiles]]], str]

_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755
_HISTORY_SCOPE = "local"  # apart from what is added to the same project with a lock


class SkillChangeResult(NamedTuple):
    """A skill that was changed, and what takes the change back; "" if nothing does."""

    skill: StoredSkill
    change_id: str


class UndoneChange(NamedTuple):
    """A change that was taken back: what it was, and the skills it was about."""

    verb: Verb
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkillStoreChanges:
    """The verbs on user skills, each with a way back; without a data folder there is none."""

    store: SkillStore
    data_directory: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def edit(self, identity: str, text: SkillText, digest: str) -> SkillChangeResult:
        """Change the words of a user skill whose published files are what `digest` says.

        Raises: SkillNotFound, StaleVersionError, EditRefused, SkillRejected, UnsafePath, OSError.
        """
        made: list[SkillChangeResult] = []

        def decide(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            bundle = _require_unchanged(identity, present[identity], digest)
            path = find_skill_md(bundle)
            data = edit_skill_md(bundle.files[path].read(), text)
            item = _check_edited_skill(identity, bundle, path, data)
            before = self._store_bundle(bundle)
            after = (
                None if before is None else {**before, path: self._store_file(data, before[path])}
            )
            made.append(SkillChangeResult(item, noted("update", {identity: (before, after)})))
            files = _read_files(bundle)
            return {identity: {**files, path: (data, files[path][1])}}

        with self._record_change() as noted:
            self.store.rewrite([identity], decide)
        return made[-1]

    def import_(
        self, bundles: Sequence[Bundle], identity: str | None = None, *, replace: bool = False
    ) -> tuple[ImportReport, str]:
        """Take bundles in as user skills. Raises: as `LocalSkills.import_`."""
        prepared = prepare_bundles(bundles, identity)
        entries = {}
        for one, bundle in zip(prepared, bundles, strict=True):
            present = self.store.files(one.skill.id)
            before = None if present is None else self._store_bundle(present)
            is_lost = present is not None and before is None
            entries[one.skill.id] = before, None if is_lost else self._store_bundle(bundle)
        with self._record_change() as note:
            change = note("update" if replace else "add", entries)
            report = self.store.import_(bundles, identity, replace=replace)
        return report, change

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Remove a user skill; the id of the change. Raises: as `LocalSkills.delete`."""
        present = self.store.files(identity)
        before = None if present is None else self._store_bundle(present)
        with self._record_change() as note:
            change = note("remove", {identity: (before, None)})
            self.store.delete(identity, shadowed=shadowed)
        return change

    def can_undo(self, identity: str) -> bool:
        """Whether a change of the skill that is there would keep all that it replaces."""
        present = self.store.files(identity)
        return bool(self.data_directory) and present is not None and not present.findings

    def undo(self, change_id: str) -> UndoneChange:
        """Take a change back.

        Raises: NothingToUndo, StaleVersionError, UnsafePath, OSError, DatabaseUnavailable.
        """
        history = self._open_history()
        found = next((one for one in history.changes() if one.id == change_id), None)
        if found is None:
            raise NothingToUndo(change_id)
        restored = {key: self._load_files(key, entry) for key, entry in found.entries.items()}

        def decide(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            for key, entry in found.entries.items():
                self._check_unchanged(key, present[key], entry)
            return restored

        self.store.rewrite([*found.entries], decide)
        history.delete(change_id)
        return UndoneChange(found.verb, tuple(found.entries))

    def _open_history(self) -> History:
        return History(self.data_directory, os.path.join(self.store.location, _HISTORY_SCOPE))

    @contextmanager
    def _record_change(self) -> Iterator[RecordChange]:
        """Notes a change that is made meanwhile, and forgets it if that fails.

        What is noted last is what was made: a change may be tried twice.
        """
        change_id, is_noted = secrets.token_hex(8), False

        def note(verb: Verb, entries: Mapping[str, tuple[_StoredFiles, _StoredFiles]]) -> str:
            nonlocal is_noted
            if is_noted:
                self._open_history().delete(change_id)
                is_noted = False
            if not self.data_directory or any(one == (None, None) for one in entries.values()):
                return ""
            made = {key: HistoryEntry(before, after) for key, (before, after) in entries.items()}
            time = self.clock().isoformat(timespec="seconds")
            self._open_history().record(HistoryChange(change_id, verb, time, made))
            is_noted = True
            return change_id

        try:
            yield note
        except BaseException:
            if is_noted:
                self._open_history().delete(change_id)
            raise
        if self.data_directory:
            clean_up_if_due(self.data_directory)

    def _store_bundle(self, bundle: Bundle) -> dict[str, HistoryFile] | None:
        """The bundle's files, kept in the store; None if not all of it can be."""
        if not self.data_directory or bundle.findings:
            return None
        store = ContentStore(self.data_directory)
        try:
            return {
                path: HistoryFile(store.put(file.read()), file.executable)
                for path, file in bundle.files.items()
            }
        except SkillhallError:
            return None

    def _store_file(self, data: bytes, previous: HistoryFile) -> HistoryFile:
        return previous._replace(sha256=ContentStore(self.data_directory).put(data))

    def _load_files(self, key: str, entry: HistoryEntry) -> dict[str, tuple[bytes, int]] | None:
        """What stood there, from the store. Raises: NothingToUndo if it is lost."""
        if entry.before is None:
            return None
        files = {}
        for path, held in entry.before.items():
            data = ContentStore(self.data_directory).find(held.sha256)
            if data is None:
                raise NothingToUndo(key)
            files[path] = data, _EXECUTABLE_MODE if held.executable else _FILE_MODE
        return files

    def _check_unchanged(self, key: str, present: Bundle | None, entry: HistoryEntry) -> None:
        now = None if present is None else self._store_bundle(present)
        if (present is None) != (entry.after is None) or now != entry.after:
            raise StaleVersionError(
                key, compute_bundle_digest(remove_hidden_files(present)) if present else ""
            )


def _check_edited_skill(identity: str, bundle: Bundle, path: str, data: bytes) -> StoredSkill:
    """The skill that the edited file makes. Raises: SkillRejected."""
    states = {path: FileState(data, bundle.files[path].executable)}
    return prepare_bundles([build_bundle(identity, states)], identity)[0].skill


def _require_unchanged(identity: str, bundle: Bundle | None, digest: str) -> Bundle:
    """The skill, which is what `digest` says. Raises: SkillNotFound, StaleVersionError."""
    if bundle is None:
        raise SkillNotFound(identity)
    if (found := compute_bundle_digest(remove_hidden_files(bundle))) != digest:
        raise StaleVersionError(identity, found)
    return bundle


def _read_files(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
    return {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE)
        for path, file in bundle.files.items()
    }
