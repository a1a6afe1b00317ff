"""Skill store in a database: user skills shared by all servers that use it.

The database is authoritative; readers use folders that mirror it. System skills are not in the
database, but in the folders of each run directory.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.catalog.live_catalog import LiveCatalog
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    check_deletion,
    find_replaced_id,
    list_names,
)
from skillhall._internal.skill_store.mirror import EXECUTABLE_BIT
from skillhall._internal.skill_store.store import (
    ACTIONS_BY_ORIGIN,
    ALL_FILES_SCAN,
    FOLDER_BY_SOURCE,
    SkillStore,
)
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.root import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.live_catalog import LoadedCatalog
    from skillhall._internal.skill_store.folder_store import FolderStore
    from skillhall._internal.skill_store.input_checks import PreparedSkill
    from skillhall._internal.skill_store.mirror import SkillMirror
    from skillhall._internal.skill_store.store import ComputeFiles, ImportReport
    from skillhall._internal.storage.records import SharedSkill
    from skillhall._internal.storage.sql.skill_rows import (
        SharedSkillReader,
        SharedSkillWriter,
        SqlSharedSkillTable,
    )

_T = TypeVar("_T")


class DatabaseStore(SkillStore):
    """User skills of a database, with the system skills of one run directory."""

    is_in_database = True

    def __init__(
        self,
        run_directory: str,
        store: SqlSharedSkillTable,
        mirror: SkillMirror,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._clock = clock
        self.location = mirror.folder
        base = os.path.abspath(os.path.expanduser(run_directory))
        self._system_folder = os.path.join(base, *FOLDER_BY_SOURCE[SYSTEM].split("/"))
        self._unshared_folder = os.path.join(base, *FOLDER_BY_SOURCE[USER].split("/"))
        self._loaded: tuple[LoadedCatalog, LoadedCatalog] | None = None  # as read, and returned
        # The mirror reports its changes; only the system skills are compared with the disk.
        self.live_catalog = LiveCatalog(self._roots, LOCAL_SKILLS, 1, mirror.folder_lock)
        mirror.on_change = partial(self.live_catalog.mark_changed, 1)

    @property
    def _roots(self) -> tuple[Root, Root]:
        return (
            Root(self._system_folder, SYSTEM, is_required=False),
            Root(self._mirror.folder, USER, is_required=False),
        )

    def current(self) -> LoadedCatalog:
        """Return the current skills; the same object while nothing changes."""
        # Read first: a change in between then changes the revision of the next call.
        revision = self._mirror.revision
        loaded, last = self.live_catalog.current(), self._loaded
        revision = f"{loaded.revision}{revision}"
        if last is None or last[0] is not loaded or last[1].revision != revision:
            last = self._loaded = loaded, loaded._replace(revision=revision)
        return last[1]

    def list_unshared_ids(self) -> Sequence[str]:
        """Ids of the user skills in the run directory, which are not shared."""
        root = Root(self._unshared_folder, USER, is_required=False)
        return [skill.id for skill in load_roots([root], LOCAL_SKILLS)]

    def catalog(self) -> Catalog:
        """Return the current system and user skills, as one consistent catalog."""
        return self.current().catalog

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; set `shadowed` if and only if a system skill shadows it.

        Raises: ReadOnly, SkillNotFound, DatabaseUnavailable, DatabaseFull.
        """

        def work(writer: SharedSkillWriter) -> None:
            system_ids = list_names(self._system_folder)
            check_deletion(id, writer.versions(), system_ids, served, shadowed=shadowed)
            writer.delete(id)

        served = self.catalog()
        self._write(work, "skill.delete")

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Read all files of a user skill; None if there is no such skill.

        Raises: DatabaseUnavailable.
        """

        def work(reader: SharedSkillReader) -> Bundle | None:
            skill = reader.find(id)
            return None if skill is None else load_into_memory(_build_bundle(skill, reader))

        return self._store.read(work)

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of user skills in one transaction.

        Raises: the errors of `compute_files`, DatabaseUnavailable, DatabaseFull.
        """

        def work(writer: SharedSkillWriter) -> None:
            present = {identity: writer.find(identity) for identity in ids}
            bundles = {
                identity: None if skill is None else _build_bundle(skill, writer)
                for identity, skill in present.items()
            }
            for identity, files in compute_files(bundles).items():
                skill = present[identity]
                if files is None:
                    writer.delete(identity)
                else:
                    writer.put(identity, files, skill.origin if skill else "imported")

        self._write(work, "skill.edit")

    def _write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        system = list_names(self._system_folder)

        def work(writer: SharedSkillWriter) -> Sequence[str | None]:
            ids = sorted(writer.versions())
            replaced_ids = [
                find_replaced_id(item.skill.id, ids, system, replace=replace) for item in prepared
            ]
            for item, replaced_id in zip(prepared, replaced_ids, strict=True):
                writer.put(replaced_id or item.skill.id, item.files, origin)
            return replaced_ids

        return self._write(work, ACTIONS_BY_ORIGIN[origin])

    def _write(self, work: Callable[[SharedSkillWriter], _T], action: str) -> _T:
        """Run a write transaction and mirror its result."""
        at = self._clock().isoformat(timespec="seconds")
        result = self._store.write(work, at, self._actor, self._action or action)
        self._mirror.try_refresh()
        return result


def _build_bundle(skill: SharedSkill, reader: SharedSkillReader) -> Bundle:
    """Build a bundle whose files are read from the database on demand."""

    def read(digest: str) -> bytes:
        return reader.read_blob(digest) or b""

    files = {
        path: SkillFile(
            RelativePath.parse(path),
            file.size,
            bool(file.mode & EXECUTABLE_BIT),
            partial(read, file.digest),
        )
        for path, file in skill.files.items()
    }
    return Bundle(skill.id, files)


def copy_to_database(
    folder_store: FolderStore, database_store: DatabaseStore, *, replace: bool
) -> ImportReport:
    """Copy the user skills of a run directory to the database, all or none.

    Raises: SkillRejected if there are no user skills, and the errors of `DatabaseStore.import_`.
    """
    bundles = [
        open_skill_bundle(skill, ALL_FILES_SCAN)
        for skill in folder_store.catalog()
        if skill.source == USER
    ]
    return database_store.import_(bundles, replace=replace)
