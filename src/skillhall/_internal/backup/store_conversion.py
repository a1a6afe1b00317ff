"""Conversion of skills and uploads between folders and tables during a restore.

A server with SQLite keeps them in folders, a server with PostgreSQL in tables.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, select, update
from sqlalchemy.dialects.postgresql import insert as postgres_insert

from skillhall._internal.backup.backup_summary import SKILLS, UPLOADS
from skillhall._internal.prompt_server.uploads.folder_uploads import (
    FILES,
    MANIFEST,
    UploadManifest,
    upload_folder_name,
)
from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from skillhall._internal.storage.backup_format import CHUNK_BYTES, FileChunk
from skillhall._internal.storage.records import parse_time
from skillhall._internal.storage.sql import tables
from skillhall._internal.storage.sql.file_rows import (
    FILE_TABLES,
    UPLOAD_OWNER,
    read_blob,
    read_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Table

    from skillhall._internal.storage.backup_folders import StagedPart

# Tables of skills and uploads, each after those that refer to it.
CONVERTED_TABLES = (
    tables.shared_file_times,
    tables.shared_skill_files,
    tables.shared_skills,
    tables.upload_files,
    tables.uploads,
    tables.blobs,
)
_ORIGIN = "restored"
_MAX_ROWS = 500
_ROWS_PER_QUERY = 8  # a file has up to 10 MiB
_MAX_BYTES = 4 * 1024 * 1024  # of contents that are inserted together
_MANIFEST_MODE = 0o600


class FolderToTables:
    """Inserts skills and uploads from folders as rows. Files must be in path order."""

    def __init__(self) -> None:
        self._data = b""
        self._owner = ("", "")  # part and name of the folder
        self._files: list[dict[str, object]] = []  # of the folder
        self._newest = 0  # time of the newest file in the folder
        self._rows: dict[Table, list[dict[str, object]]] = {}
        self._size = 0

    def add_chunk(self, connection: Connection, chunk: FileChunk) -> None:
        """Add a chunk of a file. Rows are inserted in batches, and by `finish`."""
        if chunk.part not in (SKILLS, UPLOADS):
            return
        if chunk.offset == 0:
            self._data = b""
        if len(self._data) <= MAX_FILE_SIZE:
            self._data += chunk.data
        if not chunk.is_last:
            return
        name, _, path = chunk.path.text.partition("/")
        if (chunk.part, name) != self._owner:
            self._end_folder()
            self._owner = chunk.part, name
        # Files that are in no folder, or larger than a file of a skill may be, are never served.
        if path and len(self._data) <= MAX_FILE_SIZE:
            if chunk.part == SKILLS:
                self._add_file(path, chunk)
            else:
                self._add_upload_file(path, chunk)
        if self._size > _MAX_BYTES or sum(map(len, self._rows.values())) > _MAX_ROWS:
            self._flush(connection)

    def finish(self, connection: Connection, version: int) -> None:
        """Insert the remaining rows.

        `version` is the number of the event that announces the restore.
        """
        self._end_folder()
        self._flush(connection)
        connection.execute(update(tables.shared_skills), {"version": version})
        delete_unused_contents(connection)

    def _add_file(self, path: str, chunk: FileChunk) -> None:
        digest = sha256_hex(self._data)
        self._add_row(tables.blobs, {"digest": digest, "size": len(self._data), "data": self._data})
        self._size += len(self._data)
        self._newest = max(self._newest, chunk.modified)
        self._files.append(
            {"path": path, "digest": digest, "mode": chunk.mode, "modified": chunk.modified}
        )

    def _add_upload_file(self, path: str, chunk: FileChunk) -> None:
        if path == MANIFEST:
            self._add_upload(chunk.modified)
        elif path.startswith(f"{FILES}/"):
            self._add_file(path.removeprefix(f"{FILES}/"), chunk)

    def _add_upload(self, used: int) -> None:
        manifest = UploadManifest.parse(self._data)
        if manifest is not None:
            row: dict[str, object] = {
                "source": manifest.source,
                "content_hash": manifest.content_hash,
                "used": used,  # only the order matters
                "updated": _format_time(self._newest),
            }
            self._add_row(tables.uploads, row)
            for file in self._files:
                fields = {key: file[key] for key in ("path", "digest", "mode")}
                self._add_row(tables.upload_files, {"source": manifest.source, **fields})
        self._files = []

    def _end_folder(self) -> None:
        """Add the rows of a skill after its last file."""
        part, name = self._owner
        if part == SKILLS and self._files:
            updated = _format_time(self._newest)
            row: dict[str, object] = {
                "id": name,
                "origin": _ORIGIN,
                "version": 0,
                "updated": updated,
            }
            self._add_row(tables.shared_skills, row)
            for file in self._files:
                key = {"skill_id": name, "path": file["path"]}
                fields = {"digest": file["digest"], "mode": file["mode"]}
                self._add_row(tables.shared_skill_files, {**key, **fields})
                self._add_row(tables.shared_file_times, {**key, "modified": file["modified"]})
        self._files, self._newest = [], 0

    def _add_row(self, table: Table, row: dict[str, object]) -> None:
        self._rows.setdefault(table, []).append(row)

    def _flush(self, connection: Connection) -> None:
        for table in reversed(CONVERTED_TABLES):
            if rows := self._rows.pop(table, []):
                # Files with equal content share a blob.
                connection.execute(postgres_insert(table).on_conflict_do_nothing(), rows)
        self._size = 0


def stage_skills(connection: Connection, staged: StagedPart) -> None:
    """Write the skills in the tables to the staging folder. Raises: OSError."""
    skills, files, times = tables.shared_skills, tables.shared_skill_files, tables.shared_file_times
    is_same_file = and_(times.c.skill_id == files.c.skill_id, times.c.path == files.c.path)
    # One query: a query for each of many skills would take most of the time of a restore.
    query = (
        select(skills.c.updated, files, times.c.modified, tables.blobs.c.data)
        .join(files, files.c.skill_id == skills.c.id)
        .join(tables.blobs, tables.blobs.c.digest == files.c.digest)
        .outerjoin(times, is_same_file)
    )
    rows = connection.execute(query, execution_options={"yield_per": _ROWS_PER_QUERY})
    for row in rows:
        modified = parse_time(row.updated_at) if row.modified is None else row.modified
        target = RelativePath.parse(f"{row.skill_id}/{row.path}")
        for piece in split_file(FileChunk(SKILLS, target, row.mode, modified, b""), row.data):
            staged.write(piece)


def stage_uploads(connection: Connection, staged: StagedPart) -> None:
    """Write the uploads in the tables to the staging folder. Raises: OSError."""
    files = read_files(connection, UPLOAD_OWNER)
    for row in connection.execute(select(tables.uploads)):
        folder = upload_folder_name(row.source)
        version = sha256_hex(repr((row.source, row.updated_at, row.used)).encode())[:16]
        manifest = UploadManifest(row.source, row.content_hash, version).serialize()
        contents = {f"{folder}/{MANIFEST}": (manifest, _MANIFEST_MODE)}
        for path, file in files.get(row.source, {}).items():
            data = read_blob(connection, file.digest) or b""
            contents[f"{folder}/{FILES}/{path}"] = data, file.mode
        for path, (data, mode) in contents.items():
            used = max(0, row.used)  # stored as the time of the manifest
            chunk = FileChunk(UPLOADS, RelativePath.parse(path), mode, used, b"")
            for piece in split_file(chunk, data):
                staged.write(piece)


def delete_converted_rows(connection: Connection) -> None:
    """Delete the skills and uploads in the tables. Versions keep their contents."""
    for table in CONVERTED_TABLES:
        if table is not tables.blobs:
            connection.execute(delete(table))
    delete_unused_contents(connection)


def delete_unused_contents(connection: Connection) -> None:
    """Delete the contents that no file refers to."""
    used = [
        select(table.c.digest).where(table.c.digest == tables.blobs.c.digest)
        for table in FILE_TABLES
    ]
    connection.execute(delete(tables.blobs).where(*(~query.exists() for query in used)))


def split_file(first: FileChunk, data: bytes) -> Iterator[FileChunk]:
    """Split the content of a file into chunks; other fields are those of `first`."""
    for offset in range(0, max(1, len(data)), CHUNK_BYTES):
        end = offset + CHUNK_BYTES
        yield first._replace(data=data[offset:end], offset=offset, is_last=end >= len(data))


def _format_time(modified: int) -> str:
    return datetime.fromtimestamp(modified // 1_000_000_000, UTC).isoformat(timespec="seconds")
