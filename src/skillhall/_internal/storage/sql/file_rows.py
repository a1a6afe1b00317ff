"""Files of shared skills, versions and uploads. The skill or upload is the owner of a file.

Equal contents are stored once, by digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, text, union

from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.records import StoredFile
from skillhall._internal.storage.sql.tables import (
    blobs,
    shared_skill_files,
    upload_files,
    version_files,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Column, Connection

    from skillhall._internal.storage.records import FilesByPath

# Serializes all changes to files, so that no transaction deletes blobs that another one needs.
_LOCK = "SELECT pg_advisory_xact_lock(7223446120933)"
# Columns with the owner of a file; they refer to the owner's key.
SKILL_OWNER, UPLOAD_OWNER = shared_skill_files.c.skill_id, upload_files.c.source
FILE_TABLES = (shared_skill_files, upload_files, version_files)


def lock_files(connection: Connection) -> None:
    """Block other changes to files until the transaction ends."""
    if connection.dialect.name == "postgresql":  # SQLite has only one writer
        connection.execute(text(_LOCK))


def read_files(
    connection: Connection, owner: Column[str], identity: str | None = None
) -> dict[str, dict[str, StoredFile]]:
    """Return the files by owner and path; with `identity`, only those of that owner."""
    table = owner.table
    query = select(
        owner.label("owner"), table.c.path, table.c.digest, table.c.mode, blobs.c.size
    ).join(blobs, blobs.c.digest == table.c.digest)
    if identity is not None:
        query = query.where(owner == identity)
    files: dict[str, dict[str, StoredFile]] = {}
    for row in sorted(connection.execute(query), key=lambda row: str(row.path)):
        files.setdefault(row.owner, {})[row.path] = StoredFile(row.digest, row.size, row.mode)
    return files


def read_blob(connection: Connection, digest: str) -> bytes | None:
    """Return the bytes with this digest, or `None`."""
    data = connection.execute(select(blobs.c.data).where(blobs.c.digest == digest)).scalar()
    return None if data is None else bytes(data)


def replace_owner(
    connection: Connection,
    owner: Column[str],
    identity: str,
    row: Mapping[str, object],
    files: FilesByPath,
) -> dict[str, StoredFile]:
    """Insert an owner with its files, or replace the one with the same key; return the files."""
    unused = _delete_rows(connection, owner, identity)
    key = _find_key(owner)
    connection.execute(insert(key.table), {key.name: identity, **row})
    stored = store_blobs(connection, files)
    if stored:
        rows = [
            {owner.name: identity, "path": path, "digest": file.digest, "mode": file.mode}
            for path, file in stored.items()
        ]
        connection.execute(insert(owner.table), rows)
    delete_unused_blobs(connection, unused)
    return stored


def delete_owner(connection: Connection, owner: Column[str], identity: str) -> None:
    """Delete an owner with its files."""
    delete_unused_blobs(connection, _delete_rows(connection, owner, identity))


def store_blobs(connection: Connection, files: FilesByPath) -> dict[str, StoredFile]:
    """Store the contents of files; return the files by path, in order."""
    contents = {sha256_hex(data): data for data, _ in files.values()}
    # Contents that are already stored are not sent again.
    known = select(blobs.c.digest).where(blobs.c.digest.in_(contents))
    for digest in contents.keys() - set(connection.execute(known).scalars()):
        data = contents[digest]
        connection.execute(insert(blobs), {"digest": digest, "size": len(data), "data": data})
    return {
        path: StoredFile(sha256_hex(data), len(data), mode)
        for path, (data, mode) in sorted(files.items())
    }


def _find_key(owner: Column[str]) -> Column[str]:
    [reference] = owner.foreign_keys
    return reference.column


def _delete_rows(connection: Connection, owner: Column[str], identity: str) -> set[str]:
    """Delete an owner and its files; return the digests that may now be unused."""
    digests = select(owner.table.c.digest).where(owner == identity)
    unused = set(connection.execute(digests).scalars())
    key = _find_key(owner)
    connection.execute(delete(key.table).where(key == identity))
    return unused


def delete_unused_blobs(connection: Connection, digests: set[str]) -> None:
    """Delete the contents with these digests that no file refers to."""
    if not digests:
        return
    used = union(*(select(t.c.digest).where(t.c.digest.in_(digests)) for t in FILE_TABLES))
    if unused := digests - set(connection.execute(used).scalars()):
        connection.execute(delete(blobs).where(blobs.c.digest.in_(unused)))
