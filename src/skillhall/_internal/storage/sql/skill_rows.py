"""Shared skills in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select, update

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor, AuditedChange
from skillhall._internal.skill.bundle import compute_digest, digest_files
from skillhall._internal.storage.records import SKILL_CHANGED, SKILL_DELETED, Event, SharedSkill
from skillhall._internal.storage.sql.audit_rows import add_change_rows
from skillhall._internal.storage.sql.events.event_rows import add_events
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from skillhall._internal.storage.records import FilesByPath
    from skillhall._internal.storage.sql.engine import Database

_T = TypeVar("_T")


class SqlSharedSkillTable:
    """Skills shared by all servers of a database.

    `write` may call `work` more than once.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(SharedSkillReader(connection)))

    def write(
        self,
        work: Callable[[SharedSkillWriter], _T],
        at: str,
        actor: Actor = SYSTEM_ACTOR,
        action: str = "skill.edit",
    ) -> _T:
        """Run a write transaction, record its changes and publish its events.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`; then nothing is changed.
        """

        def run(connection: Connection) -> _T:
            lock_files(connection)
            writer = SharedSkillWriter(connection)
            result = work(writer)
            writer.add_audit_rows(at, actor, action)
            writer.publish_events(at)
            return result

        return self._database.write(run)


class SharedSkillReader:
    """Queries on shared skills that all see the same state."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def versions(self) -> dict[str, int]:
        """Return the version of each skill by id. A version is never reused."""
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

    def read_blob(self, digest: str) -> bytes | None:
        """Return the bytes with this digest, or None."""
        return read_blob(self._connection, digest)


class SharedSkillWriter(SharedSkillReader):
    """Changes to shared skills in one transaction. Other writers wait."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._event_kinds: dict[str, str] = {}  # by skill id
        self._digests: dict[str, tuple[str, str]] = {}  # before and after, by skill id

    def put(self, identity: str, files: FilesByPath, origin: str) -> None:
        """Insert or replace a skill."""
        row = {"origin": origin, "version": 0, "updated": ""}  # until `publish_events` sets them
        self._note_digests(identity, digest_files(files))
        replace_owner(self._connection, SKILL_OWNER, identity, row, files)
        self._event_kinds[identity] = SKILL_CHANGED

    def delete(self, identity: str) -> None:
        """Delete a skill."""
        self._note_digests(identity, "")
        delete_owner(self._connection, SKILL_OWNER, identity)
        self._event_kinds[identity] = SKILL_DELETED

    def add_audit_rows(self, at: str, actor: Actor, action: str) -> None:
        """Add a row to the audit log for each changed skill."""
        add_change_rows(self._connection, AuditedChange(actor, action, self._digests), at)

    def _note_digests(self, identity: str, after: str) -> None:
        if identity not in self._digests:
            stored = read_files(self._connection, SKILL_OWNER, identity).get(identity, {})
            rows = [(path, file.size, file.digest) for path, file in stored.items()]
            self._digests[identity] = compute_digest(rows) if rows else "", ""
        self._digests[identity] = self._digests[identity][0], after

    def publish_events(self, at: str) -> None:
        """Publish the events and set the version of the changed skills."""
        if not self._event_kinds:
            return
        events = [
            Event(kind, identity, "", 0, {}, at) for identity, kind in self._event_kinds.items()
        ]
        version = add_events(self._connection, *events)
        put = [identity for identity, kind in self._event_kinds.items() if kind == SKILL_CHANGED]
        statement = update(shared_skills).where(shared_skills.c.id.in_(put))
        self._connection.execute(statement, {"version": version, "updated": at})
