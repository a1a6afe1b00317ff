"""File rows of shared skills and uploads. Equal contents are stored once, by digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, text, union

from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.records import StoredFile
from skillhall._internal.storage.sql.tables import blobs, shared_skill_files, upload_files

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Table

    from skillhall._internal.storage.records import FilesByPath

# Serializes all changes of files, so that no transaction deletes blobs that another one needs.
_LOCK = "SELECT pg_advisory_xact_lock(7223446120933)"
_OWNERS: tuple[Table, ...] = (shared_skill_files, upload_files)


def lock_files(connection: Connection) -> None:
    """Block other changes of files until the transaction ends."""
    if connection.dialect.name == "postgresql":  # SQLite has only one writer
        connection.execute(text(_LOCK))


def read_file_rows(
    connection: Connection, owner: Column[str], identity: str | None = None
) -> dict[str, dict[str, StoredFile]]:
    """Return files by owner and path, sorted; optionally only of one owner."""
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


def insert_files(
    connection: Connection, owner: Column[str], identity: str, files: FilesByPath
) -> None:
    """Insert the files of one owner. Contents that exist are not sent again."""
    rows = [
        {owner.name: identity, "path": path, "digest": sha256_hex(data), "mode": mode}
        for path, (data, mode) in files.items()
    ]
    contents = {sha256_hex(data): data for data, _ in files.values()}
    known = select(blobs.c.digest).where(blobs.c.digest.in_(contents))
    for digest in contents.keys() - set(connection.execute(known).scalars()):
        data = contents[digest]
        connection.execute(insert(blobs), {"digest": digest, "size": len(data), "data": data})
    if rows:
        connection.execute(insert(owner.table), rows)


def delete_owner(
    connection: Connection, key: Column[str], identity: str, owner: Column[str]
) -> set[str]:
    """Delete an owner with its files; return the digests that may now be unused."""
    digests = select(owner.table.c.digest).where(owner == identity)
    unused = set(connection.execute(digests).scalars())
    connection.execute(delete(key.table).where(key == identity))
    return unused


def delete_unused_blobs(connection: Connection, digests: set[str]) -> None:
    """Delete the blobs that no file refers to."""
    used = union(*(select(t.c.digest).where(t.c.digest.in_(digests)) for t in _OWNERS))
    unused = digests - set(connection.execute(used).scalars()) if digests else digests
    if unused:
        connection.execute(delete(blobs).where(blobs.c.digest.in_(unused)))


def read_blob(connection: Connection, digest: str) -> bytes | None:
    """Return the bytes with this digest."""
    data = connection.execute(select(blobs.c.data).where(blobs.c.digest == digest)).scalar()
    return None if data is None else bytes(data)
