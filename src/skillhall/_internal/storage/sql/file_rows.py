"""Files of shared things: rows that name bytes, and the bytes, kept once for each digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, text, union

from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.records import StoredFile
from skillhall._internal.storage.sql.tables import blobs, shared_skill_files, upload_files

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Table

    from skillhall._internal.storage.ports import FilesByPath

# Whoever waits here changes files alone: bytes that one needs are not forgotten by another.
_LOCK = "SELECT pg_advisory_xact_lock(7223446120933)"
_OWNERS: tuple[Table, ...] = (shared_skill_files, upload_files)


def lock_files(connection: Connection) -> None:
    """Keep others from changing files until the transaction ends."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer anyway
        connection.execute(text(_LOCK))


def read_file_rows(
    connection: Connection, owner: Column[str], identity: str | None = None
) -> dict[str, dict[str, StoredFile]]:
    """The files by owner and path, in order; of one owner, if it is named."""
    table = owner.table
    asked = select(
        owner.label("owner"), table.c.path, table.c.digest, table.c.mode, blobs.c.size
    ).join(blobs, blobs.c.digest == table.c.digest)
    if identity is not None:
        asked = asked.where(owner == identity)
    found: dict[str, dict[str, StoredFile]] = {}
    for row in sorted(connection.execute(asked), key=lambda row: str(row.path)):
        found.setdefault(row.owner, {})[row.path] = StoredFile(row.digest, row.size, row.mode)
    return found


def insert_files(
    connection: Connection, owner: Column[str], identity: str, files: FilesByPath
) -> None:
    """Keep files of one owner; bytes that are there already are not sent again."""
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
    """Remove one with its files; the digests of bytes that may now be loose."""
    digests = select(owner.table.c.digest).where(owner == identity)
    loose = set(connection.execute(digests).scalars())
    connection.execute(delete(key.table).where(key == identity))
    return loose


def delete_unused_blobs(connection: Connection, digests: set[str]) -> None:
    """Remove those of the bytes that nothing needs."""
    used = union(*(select(one.c.digest).where(one.c.digest.in_(digests)) for one in _OWNERS))
    unused = digests - set(connection.execute(used).scalars()) if digests else digests
    if unused:
        connection.execute(delete(blobs).where(blobs.c.digest.in_(unused)))


def read_blob(connection: Connection, digest: str) -> bytes | None:
    """The bytes with that digest."""
    data = connection.execute(select(blobs.c.data).where(blobs.c.digest == digest)).scalar()
    return None if data is None else bytes(data)
