"""Uploads in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, update

from skillhall._internal.storage.records import (
    UPLOAD_CHANGED,
    UPLOAD_DELETED,
    Event,
    StoredUpload,
)
from skillhall._internal.storage.sql.file_rows import (
    delete_owner,
    delete_unused_blobs,
    insert_files,
    lock_files,
    read_blob,
    read_file_rows,
)
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import upload_files, uploads
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceWriter

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from skillhall._internal.storage.records import FilesByPath
    from skillhall._internal.storage.sql.engine import Database

_OWNER = upload_files.c.source


class SqlUploadTable:
    """Uploaded sources of prompts. The least recently used ones are deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredUpload]:
        """Return all uploads, last used first."""
        return self._database.read(lambda connection: _read_uploads(connection, None))

    def find(self, source: str) -> StoredUpload | None:
        """Return the upload with this name; counts as a use."""

        def work(connection: Connection) -> StoredUpload | None:
            _mark_used(connection, source)
            matches = _read_uploads(connection, source)
            return matches[0] if matches else None

        return self._database.write(work)

    def read_blob(self, digest: str) -> bytes | None:
        """Return the bytes of a file."""
        return self._database.read(lambda connection: read_blob(connection, digest))

    def put(
        self, source: str, files: FilesByPath, content_hash: str, at: str, max_uploads: int
    ) -> bool:
        """Store an upload; return whether it changed. At most `max_uploads` are stored.

        Raises: DatabaseUnavailable, DatabaseFull.
        """

        def work(connection: Connection) -> bool:
            lock_files(connection)
            present = _read_uploads(connection, source)
            if present and content_hash and present[0].content_hash == content_hash:
                _mark_used(connection, source)
                return False
            unused = delete_owner(connection, uploads.c.source, source, _OWNER)
            row = {"source": source, "content_hash": content_hash, "updated": at}
            connection.execute(insert(uploads), {**row, "used": _next_use_number(connection)})
            insert_files(connection, _OWNER, source, files)
            delete_unused_blobs(connection, unused)
            _evict_oldest(connection, source, at, max_uploads)
            return True

        return self._database.write(work)


def _evict_oldest(connection: Connection, source: str, at: str, max_uploads: int) -> None:
    """Delete the least recently used uploads, and publish all changes."""
    events = [Event(UPLOAD_CHANGED, source, "", 0, {}, at)]
    for old in _read_uploads(connection, None)[max_uploads:]:
        unused = delete_owner(connection, uploads.c.source, old.source, _OWNER)
        delete_unused_blobs(connection, unused)
        events.append(Event(UPLOAD_DELETED, old.source, "", 0, {}, at))
    SqlWorkspaceWriter(connection).add_events(*events)


def _read_uploads(connection: Connection, source: str | None) -> list[StoredUpload]:
    query = select_fields(uploads).order_by(uploads.c.used.desc())
    if source is not None:
        query = query.where(uploads.c.source == source)
    files = read_file_rows(connection, _OWNER, source)
    return [
        StoredUpload(files=files.get(row["source"], {}), **row)
        for row in connection.execute(query).mappings()
    ]


def _next_use_number(connection: Connection) -> int:
    return int(connection.execute(select(func.max(uploads.c.used))).scalar() or 0) + 1


def _mark_used(connection: Connection, source: str) -> None:
    statement = update(uploads).where(uploads.c.source == source)
    connection.execute(statement, {"used": _next_use_number(connection)})
