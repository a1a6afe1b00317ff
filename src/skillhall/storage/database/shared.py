"""Skills and uploads of many servers: files by digest, in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Table, delete, func, insert, select, text, update

from skillhall.errors import VersionConflict
from skillhall.skill.bundle import sha256_of
from skillhall.storage.database.schema import (
    blobs,
    shared_skill_files,
    shared_skills,
    upload_files,
    uploads,
)
from skillhall.storage.database.writing import SqlWriting
from skillhall.storage.records import Event, KeptFile, SharedSkill, StoredUpload
from skillhall.storage.shared_port import NOT_THERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Column, Connection

    from skillhall.storage.database.engine import Database
    from skillhall.storage.shared_port import Files

SKILL_CHANGED, SKILL_DELETED, UPLOAD_CHANGED = "skill-changed", "skill-deleted", "upload-changed"
_KEEP_BLOB = text(
    "INSERT INTO blobs (digest, size, data) VALUES (:digest, :size, :data)"
    " ON CONFLICT (digest) DO NOTHING"
)


class SqlSharedSkills:
    """Shared skills in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[SharedSkill]:
        """All of them, in order of their ids."""
        return self._database.read(lambda connection: _skills(connection, None))

    def find(self, identity: str) -> SharedSkill | None:
        """The skill with that id."""
        found = self._database.read(lambda connection: _skills(connection, identity))
        return found[0] if found else None

    def read(self, digest: str) -> bytes | None:
        """The bytes of a file."""
        return self._database.read(lambda connection: _blob(connection, digest))

    def put(
        self, identity: str, files: Files, origin: str, at: str, expected: int | None = None
    ) -> SharedSkill:
        """Keep a skill in place of the one that is there. Raises: VersionConflict."""

        def work(connection: Connection) -> SharedSkill:
            event = Event(SKILL_CHANGED, identity, "", 0, {"origin": origin}, at)
            # The event comes first: whoever has its number is alone until the end.
            version = SqlWriting(connection).note(event)
            _compare(connection, identity, expected)
            _drop(connection, shared_skills.c.id, identity, shared_skill_files.c.skill_id)
            row = {"id": identity, "origin": origin, "version": version, "updated_at": at}
            connection.execute(insert(shared_skills), row)
            _keep(connection, shared_skill_files, "skill_id", identity, files)
            return _skills(connection, identity)[0]

        return self._database.write(work)

    def delete(self, identity: str, at: str, expected: int | None = None) -> bool:
        """Whether there was one to remove. Raises: VersionConflict."""

        def work(connection: Connection) -> bool:
            if not _skills(connection, identity):
                return False
            SqlWriting(connection).note(Event(SKILL_DELETED, identity, "", 0, {}, at))
            _compare(connection, identity, expected)
            _drop(connection, shared_skills.c.id, identity, shared_skill_files.c.skill_id)
            return True

        return self._database.write(work)


class SqlUploads:
    """Uploads in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredUpload]:
        """All of them, the last used first."""
        return self._database.read(lambda connection: _uploads(connection, None))

    def find(self, source: str) -> StoredUpload | None:
        """The upload of that name, which counts as a use."""

        def work(connection: Connection) -> StoredUpload | None:
            _use(connection, source)
            found = _uploads(connection, source)
            return found[0] if found else None

        return self._database.write(work)

    def read(self, digest: str) -> bytes | None:
        """The bytes of a file."""
        return self._database.read(lambda connection: _blob(connection, digest))

    def put(self, source: str, files: Files, content_hash: str, at: str, keep: int) -> bool:
        """Whether it is another one than before; at most `keep` are kept."""

        def work(connection: Connection) -> bool:
            event = Event(UPLOAD_CHANGED, source, "", 0, {"contentHash": content_hash}, at)
            before = _uploads(connection, source)
            if before and content_hash and before[0].content_hash == content_hash:
                _use(connection, source)
                return False
            SqlWriting(connection).note(event)
            _drop(connection, uploads.c.source, source, upload_files.c.source)
            row = {"source": source, "content_hash": content_hash, "updated_at": at}
            connection.execute(insert(uploads), {**row, "used": _next_use(connection)})
            _keep(connection, upload_files, "source", source, files)
            for old in _uploads(connection, None)[keep:]:
                _drop(connection, uploads.c.source, old.source, upload_files.c.source)
            return True

        return self._database.write(work)


def _compare(connection: Connection, identity: str, expected: int | None) -> None:
    found = _skills(connection, identity)
    version = found[0].version if found else NOT_THERE
    if expected is not None and expected != version:
        raise VersionConflict("skill", identity, expected, version, found[0] if found else None)


def _skills(connection: Connection, identity: str | None) -> list[SharedSkill]:
    asked = select(shared_skills).order_by(shared_skills.c.id)
    if identity is not None:
        asked = asked.where(shared_skills.c.id == identity)
    files = _files(connection, shared_skill_files.c.skill_id, identity)
    found = [
        SharedSkill(row.id, row.origin, row.version, files.get(row.id, {}), row.updated_at)
        for row in connection.execute(asked)
    ]
    return sorted(found, key=lambda one: one.id)


def _uploads(connection: Connection, source: str | None) -> list[StoredUpload]:
    asked = select(uploads).order_by(uploads.c.used.desc())
    if source is not None:
        asked = asked.where(uploads.c.source == source)
    files = _files(connection, upload_files.c.source, source)
    return [
        StoredUpload(
            row.source, row.content_hash, files.get(row.source, {}), row.used, row.updated_at
        )
        for row in connection.execute(asked)
    ]


def _files(
    connection: Connection, owner: Column[str], identity: str | None
) -> dict[str, dict[str, KeptFile]]:
    table = owner.table
    asked = select(
        owner.label("owner"), table.c.path, table.c.digest, table.c.mode, blobs.c.size
    ).join(blobs, blobs.c.digest == table.c.digest)
    if identity is not None:
        asked = asked.where(owner == identity)
    found: dict[str, dict[str, KeptFile]] = {}
    for row in sorted(connection.execute(asked), key=lambda row: str(row.path)):
        found.setdefault(row.owner, {})[row.path] = KeptFile(row.digest, row.size, row.mode)
    return found


def _keep(connection: Connection, table: Table, owner: str, identity: str, files: Files) -> None:
    for path, (data, mode) in files.items():
        digest = sha256_of(data)
        connection.execute(_KEEP_BLOB, {"digest": digest, "size": len(data), "data": data})
        row = {owner: identity, "path": path, "digest": digest, "mode": mode}
        connection.execute(insert(table), row)


def _drop(connection: Connection, key: Column[str], identity: str, owner: Column[str]) -> None:
    """Remove one with its files, and the bytes that nothing else needs."""
    digests = select(owner.table.c.digest).where(owner == identity)
    loose = [row.digest for row in connection.execute(digests)]
    connection.execute(delete(key.table).where(key == identity))
    _forget(connection, loose)


def _forget(connection: Connection, digests: Iterable[str]) -> None:
    for digest in set(digests):
        used = [
            connection.execute(select(func.count()).where(table.c.digest == digest)).scalar_one()
            for table in (shared_skill_files, upload_files)
        ]
        if not any(used):
            connection.execute(delete(blobs).where(blobs.c.digest == digest))


def _blob(connection: Connection, digest: str) -> bytes | None:
    row = connection.execute(select(blobs.c.data).where(blobs.c.digest == digest)).first()
    return None if row is None else bytes(row.data)


def _next_use(connection: Connection) -> int:
    return int(connection.execute(select(func.max(uploads.c.used))).scalar() or 0) + 1


def _use(connection: Connection, source: str) -> None:
    changed = update(uploads).where(uploads.c.source == source)
    connection.execute(changed, {"used": _next_use(connection)})
