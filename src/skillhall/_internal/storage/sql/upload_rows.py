"""Uploads in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from skillhall._internal.policy.access.actor import AuditedChange
from skillhall._internal.skill.bundle import compute_digest, digest_files
from skillhall._internal.storage.records import (
    UPLOAD_CHANGED,
    UPLOAD_DELETED,
    Event,
    StoredUpload,
)
from skillhall._internal.storage.sql.audit_rows import add_change_rows
from skillhall._internal.storage.sql.events.event_rows import add_events
from skillhall._internal.storage.sql.file_rows import (
    UPLOAD_OWNER,
    delete_owner,
    lock_files,
    read_blob,
    read_files,
    replace_owner,
)
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import uploads

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import FilesByPath
    from skillhall._internal.storage.sql.engine import Database


class SqlUploadTable:
    """Uploaded sources of prompts. Above a limit, the least recently used are deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredUpload]:
        """Return all uploads, last used first."""
        return self._database.read(lambda connection: _read_uploads(connection, None))

    def find(self, source: str) -> StoredUpload | None:
        """Return the upload with this name, or None; counts as a use."""

        def work(connection: Connection) -> StoredUpload | None:
            _mark_used(connection, source)
            matches = _read_uploads(connection, source)
            return matches[0] if matches else None

        return self._database.write(work)

    def read_blob(self, digest: str) -> bytes | None:
        """Return the bytes with this digest, or None."""
        return self._database.read(lambda connection: read_blob(connection, digest))

    def put(  # noqa: PLR0913, PLR0917 - the parts of an upload
        self,
        source: str,
        files: FilesByPath,
        content_hash: str,
        at: str,
        max_uploads: int,
        actor: Actor,
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
            used = _next_use_number(connection)
            row = {"content_hash": content_hash, "updated": at, "used": used}
            replace_owner(connection, UPLOAD_OWNER, source, row, files)
            before = _digest(present[0]) if present else ""
            digests = {source: (before, digest_files(files))}
            events = [Event(UPLOAD_CHANGED, source, "", 0, {}, at)]
            for old in _read_uploads(connection, None)[max_uploads:]:
                delete_owner(connection, UPLOAD_OWNER, old.source)
                events.append(Event(UPLOAD_DELETED, old.source, "", 0, {}, at))
                digests[old.source] = _digest(old), ""
            add_change_rows(connection, AuditedChange(actor, "source.upload", digests), at)
            add_events(connection, *events)
            return True

        return self._database.write(work)


def _read_uploads(connection: Connection, source: str | None) -> list[StoredUpload]:
    query = select_fields(uploads).order_by(uploads.c.used.desc())
    if source is not None:
        query = query.where(uploads.c.source == source)
    files = read_files(connection, UPLOAD_OWNER, source)
    return [
        StoredUpload(files=files.get(row["source"], {}), **row)
        for row in connection.execute(query).mappings()
    ]


def _digest(upload: StoredUpload) -> str:
    return compute_digest((path, file.size, file.digest) for path, file in upload.files.items())


def _next_use_number(connection: Connection) -> int:
    return int(connection.execute(select(func.max(uploads.c.used))).scalar() or 0) + 1


def _mark_used(connection: Connection, source: str) -> None:
    statement = update(uploads).where(uploads.c.source == source)
    connection.execute(statement, {"used": _next_use_number(connection)})
