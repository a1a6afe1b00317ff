"""Skills of many servers, in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import insert, select, update

from skillhall._internal.storage.ports import SKILL_CHANGED, SKILL_DELETED
from skillhall._internal.storage.records import Event, SharedSkill
from skillhall._internal.storage.sql.file_rows import (
    delete_owner,
    delete_unused_blobs,
    insert_files,
    lock_files,
    read_blob,
    read_file_rows,
)
from skillhall._internal.storage.sql.tables import shared_skill_files, shared_skills
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from skillhall._internal.storage.ports import FilesByPath, SharedSkillReader, SharedSkillWriter
    from skillhall._internal.storage.sql.engine import Database

_T = TypeVar("_T")

_OWNER = shared_skill_files.c.skill_id


class SqlSharedSkillTable:
    """Shared skills in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, work: Callable[[SharedSkillReader], _T]) -> _T:
        """What the work returns. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(_SqlSharedSkillReader(connection)))

    def write(self, work: Callable[[SharedSkillWriter], _T], at: str) -> _T:
        """What the work returns, once its changes are kept, and told to all servers.

        Raises: DatabaseUnavailable, DatabaseFull, and what the work raises.
        """

        def whole(connection: Connection) -> _T:
            lock_files(connection)
            writing = _SqlSharedSkillWriter(connection)
            result = work(writing)
            writing.publish_events(at)
            return result

        return self._database.write(whole)


class _SqlSharedSkillReader:
    """Looks in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def versions(self) -> dict[str, int]:
        """The version of each by id."""
        asked = select(shared_skills.c.id, shared_skills.c.version)
        return {row.id: row.version for row in self._connection.execute(asked)}

    def find(self, identity: str) -> SharedSkill | None:
        """The skill with that id."""
        asked = select(shared_skills).where(shared_skills.c.id == identity)
        row = self._connection.execute(asked).first()
        if row is None:
            return None
        files = read_file_rows(self._connection, _OWNER, identity).get(identity, {})
        return SharedSkill(row.id, row.origin, row.version, files, row.updated_at)

    def read_blob(self, digest: str) -> bytes | None:
        """The bytes of a file."""
        return read_blob(self._connection, digest)


class _SqlSharedSkillWriter(_SqlSharedSkillReader):
    """Changes in one transaction."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._event_kinds: dict[str, str] = {}  # what happened, by id

    def put(self, identity: str, files: FilesByPath, origin: str) -> None:
        """Keep a skill in place of the one that is there."""
        loose = delete_owner(self._connection, shared_skills.c.id, identity, _OWNER)
        row = {"id": identity, "origin": origin, "version": 0, "updated_at": ""}
        self._connection.execute(insert(shared_skills), row)
        insert_files(self._connection, _OWNER, identity, files)
        delete_unused_blobs(self._connection, loose)
        self._event_kinds[identity] = SKILL_CHANGED

    def delete(self, identity: str) -> None:
        """Remove a skill."""
        loose = delete_owner(self._connection, shared_skills.c.id, identity, _OWNER)
        delete_unused_blobs(self._connection, loose)
        self._event_kinds[identity] = SKILL_DELETED

    def publish_events(self, at: str) -> None:
        """Tell what happened; the number of the last event is the version of what was put."""
        if not self._event_kinds:
            return
        events = [
            Event(kind, identity, "", 0, {}, at) for identity, kind in self._event_kinds.items()
        ]
        # Last, since everybody who changes anything waits for the one who has the next number.
        version = SqlWorkspaceWriter(self._connection).add_events(*events)
        put = [identity for identity, kind in self._event_kinds.items() if kind == SKILL_CHANGED]
        changed = update(shared_skills).where(shared_skills.c.id.in_(put))
        self._connection.execute(changed, {"version": version, "updated_at": at})
