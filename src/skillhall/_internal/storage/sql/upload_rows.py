"""Uploads of many servers, in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, update

from skillhall._internal.storage.ports import UPLOAD_CHANGED, UPLOAD_DELETED
from skillhall._internal.storage.records import Event, StoredUpload
from skillhall._internal.storage.sql.file_rows import (
    delete_owner,
    delete_unused_blobs,
    insert_files,
    lock_files,
    read_blob,
    read_file_rows,
)
from skillhall._internal.storage.sql.tables import upload_files, uploads
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceWriter

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from skillhall._internal.storage.ports import FilesByPath
    from skillhall._internal.storage.sql.engine import Database

_OWNER = upload_files.c.source


class SqlUploadTable:
    """Uploads in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredUpload]:
        """All of them, the last used first."""
        return self._database.read(lambda connection: _read_uploads(connection, None))

    def find(self, source: str) -> StoredUpload | None:
        """The upload of that name, which counts as a use."""

        def work(connection: Connection) -> StoredUpload | None:
            _mark_used(connection, source)
            found = _read_uploads(connection, source)
            return found[0] if found else None

        return self._database.write(work)

    def read_blob(self, digest: str) -> bytes | None:
        """The bytes of a file."""
        return self._database.read(lambda connection: read_blob(connection, digest))

    def put(
        self, source: str, files: FilesByPath, content_hash: str, at: str, max_uploads: int
    ) -> bool:
        """Whether it is another one than before; at most `keep` are kept."""

        def work(connection: Connection) -> bool:
            lock_files(connection)
            before = _read_uploads(connection, source)
            if before and content_hash and before[0].content_hash == content_hash:
                _mark_used(connection, source)
                return False
            loose = delete_owner(connection, uploads.c.source, source, _OWNER)
            row = {"source": source, "content_hash": content_hash, "updated_at": at}
            connection.execute(insert(uploads), {**row, "used": _next_use_number(connection)})
            insert_files(connection, _OWNER, source, files)
            delete_unused_blobs(connection, loose)
            _evict_oldest(connection, source, at, max_uploads)
            return True

        return self._database.write(work)


def _evict_oldest(connection: Connection, source: str, at: str, max_uploads: int) -> None:
    """Drop those that nobody used longest, and tell of all that."""
    events = [Event(UPLOAD_CHANGED, source, "", 0, {}, at)]
    for old in _read_uploads(connection, None)[max_uploads:]:
        delete_unused_blobs(
            connection, delete_owner(connection, uploads.c.source, old.source, _OWNER)
        )
        events.append(Event(UPLOAD_DELETED, old.source, "", 0, {}, at))
    SqlWorkspaceWriter(connection).add_events(*events)


def _read_uploads(connection: Connection, source: str | None) -> list[StoredUpload]:
    asked = select(uploads).order_by(uploads.c.used.desc())
    if source is not None:
        asked = asked.where(uploads.c.source == source)
    files = read_file_rows(connection, _OWNER, source)
    return [
        StoredUpload(
            row.source, row.content_hash, files.get(row.source, {}), row.used, row.updated_at
        )
        for row in connection.execute(asked)
    ]


def _next_use_number(connection: Connection) -> int:
    return int(connection.execute(select(func.max(uploads.c.used))).scalar() or 0) + 1


def _mark_used(connection: Connection, source: str) -> None:
    changed = update(uploads).where(uploads.c.source == source)
    connection.execute(changed, {"used": _next_use_number(connection)})
