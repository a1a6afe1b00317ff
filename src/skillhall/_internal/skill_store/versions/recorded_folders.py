"""Versions of skills in folders that are served as they are, without review.

A version is recorded before each change by a server. Files that were edited by hand are recorded,
too, when they are found. Nothing is recorded for skills that are never changed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.policy.trust.version_states import ReviewMode
from skillhall._internal.skill.bundle import digest_files
from skillhall._internal.skill_store.input_checks import USER, read_files
from skillhall._internal.storage.sql.version_rows import VersionOrigin
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.skill_store.folder_store import FolderStore
    from skillhall._internal.skill_store.store import ImportOrigin, SkillFiles
    from skillhall._internal.storage.sql.version_rows import (
        SqlVersionTable,
        VersionReader,
        VersionWriter,
    )


class RecordedFolders:
    """Records versions of user skills, unless the database has those of others."""

    def __init__(
        self,
        folders: FolderStore,
        table: SqlVersionTable,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folders = folders
        self._table = table
        self._clock = clock
        self._recorded: dict[str, CatalogSkill] = {}  # skills whose files are recorded, by id
        folders.before_write = self._record_change

    def owns_versions(self) -> bool:
        """Whether the database has versions of this run directory only, or none.

        Raises: DatabaseUnavailable.
        """
        return self._table.read(self._is_owner)

    def record_edits(self, skill: str) -> None:
        """Record the files of a skill if they were edited by hand. Raises: DatabaseUnavailable."""
        row = self._find_working_copy(skill)
        if row is None or self._recorded.get(skill) is row:
            return
        with ExitStack() as stack:
            with suppress(OSError, SkillhallError):  # a run directory that is read-only
                stack.enter_context(self._folders.lock_user_skills())
            files = self._read_files(skill)

            def work(writer: VersionWriter) -> None:
                if files is not None and self._claim(writer):
                    writer.record_found(skill, files, is_approved=True)

            self._write(work)
        self._recorded[skill] = row

    def follow_in_transaction(
        self, writer: VersionWriter, skill: str, before: int | None, after: int | None
    ) -> None:
        """Do nothing: folders are not a part of the transaction."""

    def follow(self, skill: str, before: int | None, after: int | None) -> None:
        """Write the files of the version that is served now.

        If no version is left, the folder stays: its files are revoked.
        Raises: UnsafePath, OSError, DatabaseUnavailable.
        """
        if after is None or before == after:
            return
        files = self._table.read(lambda reader: reader.read_contents(skill, after))
        self._folders.rewrite([skill], lambda _: {skill: files})

    def _record_change(
        self, changes: Mapping[str, SkillFiles | None], actor: Actor, provenance: ImportOrigin
    ) -> None:
        """Record the files before and after a change, while the folder is locked.

        If the process is killed before the folder is written, the next record corrects it.
        """
        present = {skill: self._read_files(skill) for skill in changes}
        origin = VersionOrigin(actor.name, "", *provenance)

        def work(writer: VersionWriter) -> None:
            for skill, files in changes.items() if self._claim(writer) else ():
                before = present[skill]
                if before is not None:
                    writer.record_found(skill, before, is_approved=True)
                if files is None:
                    writer.move_to_bin(skill, actor.name, digest_files(before or {}))
                elif actor == SYSTEM_ACTOR:
                    writer.record_found(skill, files, is_approved=True)
                else:
                    writer.record_files(skill, files, origin, ReviewMode.OFF)

        self._write(work)

    def _claim(self, writer: VersionWriter) -> bool:
        """Claim the versions for this run directory, unless another one owns them.

        Return whether this run directory owns them.
        """
        is_owner = self._is_owner(writer)
        if is_owner and writer.find_recorded_store() != self._folders.run_directory:
            writer.set_recorded_store(self._folders.run_directory)
        return is_owner

    def _is_owner(self, reader: VersionReader) -> bool:
        others = {reader.find_recorded_store(), *reader.list_reviewed_stores()}
        others -= {"", self._folders.run_directory}
        return not any(map(os.path.isdir, others))

    def _find_working_copy(self, skill: str) -> CatalogSkill | None:
        catalog = self._folders.current().catalog
        skills = (*catalog, *(loser.skill for loser in catalog.shadowed))
        return next((row for row in skills if row.id == skill and row.source == USER), None)

    def _read_files(self, skill: str) -> SkillFiles | None:
        """Return the files of a skill; None if there is none, or if it cannot be read."""
        try:
            bundle = self._folders.files(skill)
            return None if bundle is None else read_files(bundle)
        except (SkillhallError, OSError):
            return None

    def _write(self, work: Callable[[VersionWriter], None]) -> None:
        def run(writer: VersionWriter) -> None:
            work(writer)
            writer.number_without_events()

        self._table.write(run, self._clock().isoformat(timespec="seconds"))
