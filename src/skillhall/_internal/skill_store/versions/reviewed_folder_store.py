"""Skill store in folders whose skills are reviewed: approved versions are served.

The user skills in the run directory are working copies. Each change to them is recorded as a
version in the database, even if it is made by hand. Readers get the approved versions from a
mirror.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.skill.bundle import digest_files
from skillhall._internal.skill_store.input_checks import USER, check_deletion, read_files
from skillhall._internal.skill_store.mirrored_store import MirroredStore
from skillhall._internal.skill_store.store import WRITTEN_HERE, bind_actor
from skillhall._internal.storage.sql.version_rows import (
    IN_DATABASE,
    REVIEW_VARIABLE,
    VersionOrigin,
    build_review_error,
)
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.trust.version_states import ReviewMode
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.folder_store import FolderStore
    from skillhall._internal.skill_store.input_checks import PreparedSkill
    from skillhall._internal.skill_store.mirror import SkillMirror
    from skillhall._internal.skill_store.store import ComputeFiles, ImportOrigin, SkillFiles
    from skillhall._internal.storage.sql.version_rows import SqlVersionTable, VersionWriter


class ReviewedFolderStore(MirroredStore):
    """User skills of a run directory; only their approved versions are served."""

    def __init__(
        self,
        folders: FolderStore,
        table: SqlVersionTable,
        mirror: SkillMirror,
        mode: ReviewMode,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(folders.run_directory, mirror)
        self.location = folders.location
        self._folders = folders
        self._table = table
        self._mode = mode
        self._clock = clock
        self._lock = threading.Lock()
        self._recorded: Mapping[str, CatalogSkill] = {}  # working copies, by id
        folders.before_write = self._record_change
        mirror.prepare_with(self.prepare)

    def prepare(self) -> None:
        """Record the present skills when review is turned on; they count as approved.

        Raises: ConfigInvalid if the database has the versions of another run directory,
        DatabaseUnavailable, DatabaseFull.
        """
        location = self._folders.run_directory
        owners = self._table.read(
            lambda reader: {*reader.list_reviewed_stores(), reader.find_recorded_store()}
        )
        for other in sorted(owners - {""}):
            if other in (location, IN_DATABASE) or not os.path.isdir(other):
                continue
            problem = f"the database has the versions of the skills in {other}"
            hint = "give each run directory its own SKILLHALL_DATA_DIR or SKILLHALL_DATABASE_URL"
            raise ConfigInvalid(REVIEW_VARIABLE, problem, hint)
        self._record_working_copies(is_start=True)

    def record_edits(self, skill: str = "") -> None:
        """Record edits that were made by hand as drafts, of all skills. Raises: as `prepare`."""
        del skill
        current = {skill.id: skill for skill in self._list_working_copies()}
        if any(self._recorded.get(skill.id) is not skill for skill in current.values()):
            self._record_working_copies()

    def watch(self, on_change: Callable[[], object]) -> None:
        """Detect changes to the served skills and to the working copies."""
        super().watch(on_change)
        self._folders.live_catalog.watch(self._try_record_edits)

    def close(self) -> None:
        """Stop detecting changes. Idempotent."""
        self._folders.live_catalog.close()
        super().close()

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; set `shadowed` if and only if a system skill shadows it.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError, DatabaseUnavailable.
        """
        catalog = self.catalog()
        if self._folders.files(id) is None and any(
            skill.id == id and skill.source == USER for skill in catalog
        ):
            check_deletion(id, {id}, (), catalog, shadowed=shadowed)
            self._record_change({id: None}, self._actor, WRITTEN_HERE)  # only versions are left
        else:
            self._bind_folders().delete(id, shadowed=shadowed)
        self._mirror.try_refresh()

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Open all files of a working copy; None if it does not exist. Raises: UnsafePath."""
        return self._folders.files(id)

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of working copies while holding the folder's lock.

        Raises: the errors of `compute_files`, UnsafePath, OSError, DatabaseUnavailable.
        """
        self._bind_folders().rewrite(ids, compute_files)
        self._mirror.try_refresh()

    def follow_in_transaction(
        self, writer: VersionWriter, skill: str, before: int | None, after: int | None
    ) -> None:
        """Do nothing: folders are not a part of the transaction."""

    def follow(self, skill: str, before: int | None, after: int | None) -> None:
        """Refresh the mirror, and the working copy if it is the version served before.

        A newer draft is not changed.
        """
        if before == after:
            return
        self._mirror.try_refresh()
        if before is None or after is None:
            return
        old, new = self._table.read(
            lambda reader: (reader.read_contents(skill, before), reader.read_contents(skill, after))
        )

        def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, SkillFiles | None]:
            bundle = present[skill]
            is_served = bundle is not None and read_files(bundle) == old
            return {skill: new} if is_served and new else {}

        with suppress(SkillhallError, OSError):  # a folder that is read-only, or has links
            self._folders.rewrite([skill], compute_files)

    def _write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        return self._bind_folders().write_skills(prepared, origin, replace=replace)

    def _bind_folders(self) -> FolderStore:
        return bind_actor(self._folders, self._actor, self._action, self._provenance)

    def _record_change(
        self, changes: Mapping[str, SkillFiles | None], actor: Actor, provenance: ImportOrigin
    ) -> None:
        """Record versions before the folders are written, while their lock is held.

        If the process is killed in between, the version is a draft that equals no working copy.
        """
        deleted = [skill for skill, files in changes.items() if files is None]
        digests = {skill: digest_files(self._read_working_copy(skill) or {}) for skill in deleted}

        def work(writer: VersionWriter) -> None:
            for skill, files in changes.items():
                if files is None:
                    writer.move_to_bin(skill, actor.name, digests[skill])
                elif actor == SYSTEM_ACTOR:
                    writer.record_found(skill, files)
                else:
                    origin = VersionOrigin(actor.name, "", *provenance)
                    writer.record_files(skill, files, origin, self._mode)

        self._table.write(work, self._now())

    def _record_working_copies(self, *, is_start: bool = False) -> None:
        with self._lock, ExitStack() as stack:
            with suppress(OSError, SkillhallError):  # a run directory that is read-only
                stack.enter_context(self._folders.lock_user_skills())
            current = {skill.id: skill for skill in self._list_working_copies()}
            changed = {
                skill: files
                for skill, row in current.items()
                if self._recorded.get(skill) is not row
                and (files := self._read_working_copy(skill)) is not None
            }
            location = self._folders.run_directory

            def work(writer: VersionWriter) -> None:
                stores = writer.list_reviewed_stores()
                for skill, files in changed.items():
                    writer.record_found(skill, files, is_approved=not stores)
                if stores != [location]:
                    writer.set_reviewed_store(location, is_reviewed=True)

            if changed or is_start:
                self._table.write(work, self._now())
            self._recorded = current

    def _read_working_copy(self, skill: str) -> SkillFiles | None:
        try:
            bundle = self._folders.files(skill)
            return None if bundle is None else read_files(bundle)
        except (SkillhallError, OSError):  # it is being written
            return None

    def _list_working_copies(self) -> list[CatalogSkill]:
        catalog = self._folders.current().catalog
        skills = (*catalog, *(loser.skill for loser in catalog.shadowed))
        return [skill for skill in skills if skill.source == USER]

    def _try_record_edits(self) -> None:
        with suppress(SkillhallError, OSError):  # the next change tries again
            self.record_edits()

    def _now(self) -> str:
        return self._clock().isoformat(timespec="seconds")


def end_reviews(table: SqlVersionTable, run_directory: str, at: str, *, may_end: bool) -> None:
    """Record that the skills of a run directory are no longer reviewed.

    Raises: ConfigInvalid unless `may_end`, DatabaseUnavailable, DatabaseFull.
    """
    mine = {os.path.abspath(os.path.expanduser(run_directory)), IN_DATABASE}
    if mine & {*table.read(lambda reader: reader.list_reviewed_stores())}:
        if not may_end:
            raise build_review_error()
        table.write(lambda writer: writer.set_reviewed_store("", is_reviewed=False), at)
