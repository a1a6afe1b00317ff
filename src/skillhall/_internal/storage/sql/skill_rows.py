"""Shared skills in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select, update

from skillhall._internal.storage.records import SKILL_CHANGED, SKILL_DELETED, Event, SharedSkill
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

    def write(self, work: Callable[[SharedSkillWriter], _T], at: str) -> _T:
        """Run a write transaction and publish its events.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`; then nothing is changed.
        """

        def run(connection: Connection) -> _T:
            lock_files(connection)
            writer = SharedSkillWriter(connection)
            result = work(writer)
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

    def put(self, identity: str, files: FilesByPath, origin: str) -> None:
        """Insert or replace a skill."""
        row = {"origin": origin, "version": 0, "updated": ""}  # until `publish_events` sets them
        replace_owner(self._connection, SKILL_OWNER, identity, row, files)
        self._event_kinds[identity] = SKILL_CHANGED

    def delete(self, identity: str) -> None:
        """Delete a skill."""
        delete_owner(self._connection, SKILL_OWNER, identity)
        self._event_kinds[identity] = SKILL_DELETED

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
