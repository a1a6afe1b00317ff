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

from skillhall.errors import (
    ChangedMeanwhile,
    NothingToUndo,
    SkillhallError,
    SkillNotFound,
)
from skillhall.library.adding import bundle_of, digest_of
from skillhall.library.editing import edited
from skillhall.library.local_intake import LocalSkill, prepare_all, skill_md_of
from skillhall.skill.merging import FileState
from skillhall.storage.contents import ContentStore
from skillhall.storage.history import Change, Entry, Held, History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall.library.editing import SkillText
    from skillhall.library.local_skills import ImportReport, LocalSkills
    from skillhall.skill.bundle import Bundle
    from skillhall.sources.writing import WritableFolder
    from skillhall.storage.history import Verb

    _Files: TypeAlias = Mapping[str, Held] | None

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

    local: LocalSkills
    data_directory: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def edit(self, identity: str, text: SkillText, digest: str) -> Changed:
        """Change the words of a user skill that is what `digest` says.

        Raises: SkillNotFound, ChangedMeanwhile, EditRefused, SkillRejected, UnsafePath, OSError.
        """
        with self.local.opened() as target:
            bundle = self._present(identity)
            if digest_of(bundle) != digest:
                raise ChangedMeanwhile(identity, digest_of(bundle))
            path = skill_md_of(bundle)
            data = edited(bundle.files[path].read(), text)
            item = _checked(identity, bundle, path, data)
            before = self._held(bundle)
            after = None if before is None else {**before, path: self._kept(data, before[path])}
            with (
                self._recorded("update", {identity: (before, after)}) as change,
                target.folder(identity) as folder,
            ):
                folder.put(path, data, folder.mode(path))
        return Changed(item, change)

    def import_(
        self, bundles: Sequence[Bundle], identity: str | None = None, *, replace: bool = False
    ) -> tuple[ImportReport, str]:
        """Take bundles in as user skills. Raises: as `LocalSkills.import_`."""
        prepared = prepare_all(bundles, identity)
        entries = {}
        for one, bundle in zip(prepared, bundles, strict=True):
            present = self.local.files(one.item.id)
            before = None if present is None else self._held(present)
            is_lost = present is not None and before is None
            entries[one.item.id] = before, None if is_lost else self._held(bundle)
        with self._recorded("update" if replace else "add", entries) as change:
            report = self.local.import_(bundles, identity, replace=replace)
        return report, change

    def delete(self, identity: str) -> str:
        """Remove a user skill; the id of the change. Raises: as `LocalSkills.delete`."""
        present = self.local.files(identity)
        before = None if present is None else self._held(present)
        with self._recorded("remove", {identity: (before, None)}) as change:
            self.local.delete(identity)
        return change

    def undo(self, change_id: str) -> Undone:
        """Take a change back. Raises: NothingToUndo, ChangedMeanwhile, UnsafePath, OSError."""
        history = self._history()
        found = next((one for one in history.changes() if one.id == change_id), None)
        if found is None:
            raise NothingToUndo(change_id)
        restored = {key: self._files(key, entry) for key, entry in found.entries.items()}
        with self.local.opened(make=True) as target:
            for key, entry in found.entries.items():
                self._refuse_changed(key, entry)
            for key, entry in found.entries.items():
                _restore(target, key, entry, restored[key])
        history.drop(change_id)
        return Undone(found.verb, tuple(found.entries))

    def _present(self, identity: str) -> Bundle:
        bundle = self.local.files(identity)
        if bundle is None:
            raise SkillNotFound(identity)
        return bundle

    def _history(self) -> History:
        scope = os.path.join(self.local.run_directory, ".agents", _SCOPE)
        return History(self.data_directory, scope)

    @contextmanager
    def _recorded(self, verb: Verb, entries: Mapping[str, tuple[_Files, _Files]]) -> Iterator[str]:
        """The id of a change that is made meanwhile; it is forgotten if that fails."""
        if not self.data_directory or any(one == (None, None) for one in entries.values()):
            yield ""
            return
        change_id = secrets.token_hex(8)
        made = {key: Entry(before, after) for key, (before, after) in entries.items()}
        time = self.clock().isoformat(timespec="seconds")
        self._history().record(Change(change_id, verb, time, made))
        try:
            yield change_id
        except BaseException:
            self._history().drop(change_id)
            raise

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

    def _refuse_changed(self, key: str, entry: Entry) -> None:
        present = self.local.files(key)
        now = None if present is None else self._held(present)
        if (present is None) != (entry.after is None) or now != entry.after:
            raise ChangedMeanwhile(key, digest_of(present) if present else "")


def _checked(identity: str, bundle: Bundle, path: str, data: bytes) -> LocalSkill:
    """The skill that the edited file makes. Raises: SkillRejected."""
    states = {path: FileState(data, bundle.files[path].executable)}
    return prepare_all([bundle_of(identity, states)], identity)[0].item


def _restore(
    target: WritableFolder,
    key: str,
    entry: Entry,
    files: Mapping[str, tuple[bytes, int]] | None,
) -> None:
    if files is None:
        target.discard(key)
    elif entry.after is None:
        target.put_folder(key, files)
    else:
        before = entry.before or {}
        differing = [p for p in {*before, *entry.after} if before.get(p) != entry.after.get(p)]
        if len(differing) == 1 and differing[0] in files and "/" not in differing[0]:
            # What is no part of a bundle stays where it is.
            with target.folder(key) as folder:
                folder.put(differing[0], *files[differing[0]])
        else:
            target.swap_folder(key, files)
