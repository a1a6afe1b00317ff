"""Shared skills in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor, AuditedChange
from skillhall._internal.policy.trust.version_states import ReviewMode
from skillhall._internal.skill.bundle import compute_digest, digest_files
from skillhall._internal.storage.records import (
    SKILL_CHANGED,
    SKILL_DELETED,
    VERSION_CHANGED,
    SharedSkill,
)
from skillhall._internal.storage.sql.audit_rows import add_change_rows
from skillhall._internal.storage.sql.file_rows import (
    SKILL_OWNER,
    delete_owner,
    lock_files,
    read_blob,
    read_files,
    replace_owner,
)
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import shared_file_times, shared_skills
from skillhall._internal.storage.sql.version_rows import (
    BIN_RETENTION,
    IN_DATABASE,
    VersionOrigin,
    VersionReader,
    VersionWriter,
    build_review_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from sqlalchemy import Connection

    from skillhall._internal.storage.records import FilesByPath, VersionReview
    from skillhall._internal.storage.sql.engine import Database

_T = TypeVar("_T")


class SqlSharedSkillTable:
    """Skills shared by all servers of a database, and their versions.

    With review, servers serve the approved versions: `read_served` reads those, `read` the skills
    as they were written last. `write` may call `work` more than once.
    """

    def __init__(
        self,
        database: Database,
        review: ReviewMode = ReviewMode.OFF,
        *,
        may_end_reviews: bool = True,
        bin_retention: Callable[[], timedelta] = lambda: BIN_RETENTION,
    ) -> None:
        self._database = database
        self._bin_retention = bin_retention
        self.review = review
        self._may_end_reviews = may_end_reviews

    @property
    def is_reviewed(self) -> bool:
        """Whether approved versions are served, instead of the newest ones."""
        return self.review is not ReviewMode.OFF

    def read(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(SharedSkillReader(connection)))

    def read_served(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """Run a read transaction on the skills that are served. Raises: DatabaseUnavailable."""
        if not self.is_reviewed:
            return self.read(work)
        return self._database.read(lambda connection: work(ApprovedSkillReader(connection)))

    def write(
        self,
        work: Callable[[SharedSkillWriter], _T],
        at: str,
        actor: Actor,
        action: str = "skill.edit",
        provenance: tuple[str, str] = ("", ""),
    ) -> _T:
        """Run a write transaction, record its changes and publish its events.

        `provenance` is the source and the commit of new versions.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`; then nothing is changed.
        """

        def run(connection: Connection) -> _T:
            lock_files(connection)
            origin = VersionOrigin(actor.name, "", *provenance)
            history = VersionWriter(connection, at, self._bin_retention())
            writer = SharedSkillWriter(history, origin, self.review)
            result = work(writer)
            writer.add_audit_rows(at, actor, action)
            writer.history.publish_events()
            return result

        return self._database.write(run)

    def prepare(self, at: str) -> None:
        """Record versions of the skills that have none, and whether skills are reviewed.

        Raises: ConfigInvalid if that would end the reviews, DatabaseUnavailable, DatabaseFull.
        """

        def work(writer: SharedSkillWriter) -> None:
            was_reviewed = IN_DATABASE in writer.history.list_reviewed_stores()
            if was_reviewed and not self.is_reviewed and not self._may_end_reviews:
                raise build_review_error()
            writer.history.adopt_shared_skills(self.review)
            if was_reviewed != self.is_reviewed:
                writer.history.set_reviewed_store(IN_DATABASE, is_reviewed=self.is_reviewed)

        self.write(work, at, SYSTEM_ACTOR)


class SharedSkillReader:
    """Queries on shared skills that all see the same state."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def versions(self) -> dict[str, int]:
        """Return a number for each skill by id, which changes with the skill."""
        rows = self._connection.execute(select(shared_skills.c.id, shared_skills.c.version))
        return {row.id: row.version for row in rows}

    def find(self, identity: str) -> SharedSkill | None:
        """Return the skill with this id, or None."""
        query = select_fields(shared_skills).where(shared_skills.c.id == identity)
        row = self._connection.execute(query).mappings().first()
        if row is None:
            return None
        files = read_files(self._connection, SKILL_OWNER, identity).get(identity, {})
        query = select(shared_file_times).where(shared_file_times.c.skill_id == identity)
        times = {row.path: row.modified for row in self._connection.execute(query)}
        return SharedSkill(files=files, times=times, **row)

    def list_approvals(self) -> dict[str, VersionReview]:
        """Return no approvals: these skills are not reviewed."""
        return {}

    def read_blob(self, digest: str) -> bytes | None:
        """Return the bytes with this digest, or None."""
        return read_blob(self._connection, digest)


class ApprovedSkillReader(SharedSkillReader):
    """The same queries on the current versions of skills."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._history = VersionReader(connection)

    def versions(self) -> dict[str, int]:
        """Return a number for each skill by id, which changes with its current version."""
        return {skill: row.changed for skill, row in self._history.list_current().items()}

    def list_approvals(self) -> dict[str, VersionReview]:
        """Return who approved the current versions, by skill."""
        return self._history.list_approvals()

    def find(self, identity: str) -> SharedSkill | None:
        """Return the current version of a skill, or None."""
        current = self._history.find_current_row(identity)
        version = None if current is None else self._history.find(identity, current.number)
        if current is None or version is None:
            return None
        files = self._history.read_files(identity, current.number)
        return SharedSkill(identity, "", current.changed, files, version.created)


class SharedSkillWriter(SharedSkillReader):
    """Changes to shared skills in one transaction. Other writers wait."""

    def __init__(self, history: VersionWriter, origin: VersionOrigin, review: ReviewMode) -> None:
        super().__init__(history.connection)
        self.history = history
        self._origin = origin
        self._digests: dict[str, tuple[str, str]] = {}  # before and after, by skill id
        self._review = review

    def put(self, identity: str, files: FilesByPath, origin: str) -> None:
        """Insert or replace a skill, and record its version."""
        self._note_digests(identity, digest_files(files))
        # `publish_events` sets the other columns.
        row = {"origin": origin, "version": 0, "updated": ""}
        stored = replace_owner(self._connection, SKILL_OWNER, identity, row, files)
        is_served = self._review is ReviewMode.OFF
        self.history.mark_shared_changed(identity)
        self.history.add_event(SKILL_CHANGED if is_served else VERSION_CHANGED, identity)
        self.history.record(identity, stored, self._origin, self._review)

    def delete(self, identity: str) -> None:
        """Delete a skill. Its versions stay in the bin for 30 days."""
        self._note_digests(identity, "")
        is_draft = self._review is not ReviewMode.OFF and not self.history.find_current(identity)
        delete_owner(self._connection, SKILL_OWNER, identity)
        self.history.move_to_bin(identity, self._origin.author, self._digests[identity][0])
        self.history.add_event(VERSION_CHANGED if is_draft else SKILL_DELETED, identity)

    def add_audit_rows(self, at: str, actor: Actor, action: str) -> None:
        """Add a row to the audit log for each changed skill."""
        add_change_rows(self._connection, AuditedChange(actor, action, self._digests), at)

    def _note_digests(self, identity: str, after: str) -> None:
        if identity not in self._digests:
            stored = read_files(self._connection, SKILL_OWNER, identity).get(identity, {})
            rows = [(path, file.size, file.digest) for path, file in stored.items()]
            self._digests[identity] = compute_digest(rows) if rows else "", ""
        self._digests[identity] = self._digests[identity][0], after
