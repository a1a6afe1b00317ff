"""Skill store in a database: user skills shared by all servers that use it.

The database is authoritative; readers use folders that mirror it. System skills are not in the
database, but in the folders of each run directory.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill_store.input_checks import (
    USER,
    check_deletion,
    find_replaced_id,
    list_names,
)
from skillhall._internal.skill_store.mirror import EXECUTABLE_BIT
from skillhall._internal.skill_store.mirrored_store import MirroredStore
from skillhall._internal.skill_store.store import (
    ACTIONS_BY_ORIGIN,
    ALL_FILES_SCAN,
)
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.root import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    from skillhall._internal.storage.sql.version_rows import VersionWriter

_T = TypeVar("_T")


class DatabaseStore(MirroredStore):
    """User skills of a database, with the system skills of one run directory."""

    def __init__(
        self,
        run_directory: str,
        store: SqlSharedSkillTable,
        mirror: SkillMirror,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(run_directory, mirror)
        self._store = store
        self._clock = clock
        self.location = mirror.folder
        mirror.prepare_with(lambda: store.prepare(self._now()))

    def list_unshared_ids(self) -> Sequence[str]:
        """Ids of the user skills in the run directory, which are not shared."""
        root = Root(self._user_folder, USER, is_required=False)
        return [skill.id for skill in load_roots([root], LOCAL_SKILLS)]

    def record_edits(self, skill: str) -> None:
        """Do nothing: every change is made in the database."""

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

    def follow_in_transaction(
        self, writer: VersionWriter, skill: str, before: int | None, after: int | None
    ) -> None:
        """Update the working copy of a skill whose current version changes.

        Without review, it is what is served. With review, a newer draft stays as it is.
        """
        if not self._store.is_reviewed or (
            None not in (before, after) and writer.is_shared_equal(skill, before)
        ):
            writer.copy_to_shared(skill, after)

    def follow(self, skill: str, before: int | None, after: int | None) -> None:
        """Refresh the mirror after the current version of a skill changed."""
        del skill
        if before != after:
            self._mirror.try_refresh()

    def _write(self, work: Callable[[SharedSkillWriter], _T], action: str) -> _T:
        """Run a write transaction and mirror its result."""
        result = self._store.write(
            work, self._now(), self._actor, self._action or action, self._provenance
        )
        self._mirror.try_refresh()
        return result

    def _now(self) -> str:
        return self._clock().isoformat(timespec="seconds")


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
