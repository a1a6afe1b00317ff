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

from skillhall._internal.installer.data_cleanup import sweep_when_due
from skillhall._internal.installer.preflight import bundle_of, digest_of
from skillhall._internal.policy.readable_files import published
from skillhall._internal.skill.edit import edited
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill_store.input_checks import LocalSkill, prepare_all, skill_md_of
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import Change, Entry, Held, History
from skillhall.errors import (
    ChangedMeanwhile,
    NothingToUndo,
    SkillhallError,
    SkillNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.edit import SkillText
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.store import Files, OwnSkills
    from skillhall._internal.storage.history import Verb

    _Files: TypeAlias = Mapping[str, Held] | None
    Note: TypeAlias = Callable[[Verb, Mapping[str, tuple[_Files, _Files]]], str]

_FILE, _PROGRAM = 0o644, 0o755
_SCOPE = "local"  # apart from what is added to the same project with a lock


class Changed(NamedTuple):
    """A skill that was changed, and what takes the change back; "" if nothing does."""

    item: LocalSkill
    change: str


class Undone(NamedTuple):
    """A change that was taken back: what it was, and the skills it was about."""

    verb: Verb
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalChanges:
    """The verbs on user skills, each with a way back; without a data folder there is none."""

    own: OwnSkills
    data_directory: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def edit(self, identity: str, text: SkillText, digest: str) -> Changed:
        """Change the words of a user skill whose published files are what `digest` says.

        Raises: SkillNotFound, ChangedMeanwhile, EditRefused, SkillRejected, UnsafePath, OSError.
        """
        made: list[Changed] = []

        def decide(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
            bundle = _unchanged(identity, present[identity], digest)
            path = skill_md_of(bundle)
            data = edited(bundle.files[path].read(), text)
            item = _checked(identity, bundle, path, data)
            before = self._held(bundle)
            after = None if before is None else {**before, path: self._kept(data, before[path])}
            made.append(Changed(item, noted("update", {identity: (before, after)})))
            files = _files_of(bundle)
            return {identity: {**files, path: (data, files[path][1])}}

        with self._recording() as noted:
            self.own.rewrite([identity], decide)
        return made[-1]

    def import_(
        self, bundles: Sequence[Bundle], identity: str | None = None, *, replace: bool = False
    ) -> tuple[ImportReport, str]:
        """Take bundles in as user skills. Raises: as `LocalSkills.import_`."""
        prepared = prepare_all(bundles, identity)
        entries = {}
        for one, bundle in zip(prepared, bundles, strict=True):
            present = self.own.files(one.item.id)
            before = None if present is None else self._held(present)
            is_lost = present is not None and before is None
            entries[one.item.id] = before, None if is_lost else self._held(bundle)
        with self._recording() as note:
            change = note("update" if replace else "add", entries)
            report = self.own.import_(bundles, identity, replace=replace)
        return report, change

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Remove a user skill; the id of the change. Raises: as `LocalSkills.delete`."""
        present = self.own.files(identity)
        before = None if present is None else self._held(present)
        with self._recording() as note:
            change = note("remove", {identity: (before, None)})
            self.own.delete(identity, shadowed=shadowed)
        return change

    def can_take_back(self, identity: str) -> bool:
        """Whether a change of the skill that is there would keep all that it replaces."""
        present = self.own.files(identity)
        return bool(self.data_directory) and present is not None and not present.findings

    def undo(self, change_id: str) -> Undone:
        """Take a change back.

        Raises: NothingToUndo, ChangedMeanwhile, UnsafePath, OSError, DatabaseUnavailable.
        """
        history = self._history()
        found = next((one for one in history.changes() if one.id == change_id), None)
        if found is None:
            raise NothingToUndo(change_id)
        restored = {key: self._files(key, entry) for key, entry in found.entries.items()}

        def decide(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
            for key, entry in found.entries.items():
                self._refuse_changed(key, present[key], entry)
            return restored

        self.own.rewrite([*found.entries], decide)
        history.drop(change_id)
        return Undone(found.verb, tuple(found.entries))

    def _history(self) -> History:
        return History(self.data_directory, os.path.join(self.own.place, _SCOPE))

    @contextmanager
    def _recording(self) -> Iterator[Note]:
        """Notes a change that is made meanwhile, and forgets it if that fails.

        What is noted last is what was made: a change may be tried twice.
        """
        change_id, is_noted = secrets.token_hex(8), False

        def note(verb: Verb, entries: Mapping[str, tuple[_Files, _Files]]) -> str:
            nonlocal is_noted
            if is_noted:
                self._history().drop(change_id)
                is_noted = False
            if not self.data_directory or any(one == (None, None) for one in entries.values()):
                return ""
            made = {key: Entry(before, after) for key, (before, after) in entries.items()}
            time = self.clock().isoformat(timespec="seconds")
            self._history().record(Change(change_id, verb, time, made))
            is_noted = True
            return change_id

        try:
            yield note
        except BaseException:
            if is_noted:
                self._history().drop(change_id)
            raise
        if self.data_directory:
            sweep_when_due(self.data_directory)

    def _held(self, bundle: Bundle) -> dict[str, Held] | None:
        """The bundle's files, kept in the store; None if not all of it can be."""
        if not self.data_directory or bundle.findings:
            return None
        store = ContentStore(self.data_directory)
        try:
            return {
                path: Held(store.keep(file.read()), file.executable)
                for path, file in bundle.files.items()
            }
        except SkillhallError:
            return None

    def _kept(self, data: bytes, like: Held) -> Held:
        return like._replace(sha256=ContentStore(self.data_directory).keep(data))

    def _files(self, key: str, entry: Entry) -> dict[str, tuple[bytes, int]] | None:
        """What stood there, from the store. Raises: NothingToUndo if it is lost."""
        if entry.before is None:
            return None
        files = {}
        for path, held in entry.before.items():
            data = ContentStore(self.data_directory).find(held.sha256)
            if data is None:
                raise NothingToUndo(key)
            files[path] = data, _PROGRAM if held.executable else _FILE
        return files

    def _refuse_changed(self, key: str, present: Bundle | None, entry: Entry) -> None:
        now = None if present is None else self._held(present)
        if (present is None) != (entry.after is None) or now != entry.after:
            raise ChangedMeanwhile(key, digest_of(published(present)) if present else "")


def _checked(identity: str, bundle: Bundle, path: str, data: bytes) -> LocalSkill:
    """The skill that the edited file makes. Raises: SkillRejected."""
    states = {path: FileState(data, bundle.files[path].executable)}
    return prepare_all([bundle_of(identity, states)], identity)[0].item


def _unchanged(identity: str, bundle: Bundle | None, digest: str) -> Bundle:
    """The skill, which is what `digest` says. Raises: SkillNotFound, ChangedMeanwhile."""
    if bundle is None:
        raise SkillNotFound(identity)
    if (found := digest_of(published(bundle))) != digest:
        raise ChangedMeanwhile(identity, found)
    return bundle


def _files_of(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
    return {
        path: (file.read(), _PROGRAM if file.executable else _FILE)
        for path, file in bundle.files.items()
    }
