"""Revocations in a table. Rows are only added, with growing numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import func, insert, select, text

from skillhall._internal.policy.trust.revocations import Revocation, RevocationEntry
from skillhall._internal.storage.records import REVOCATIONS_CHANGED, parse_time
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.events.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import revocations

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, RowMapping

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.sql.engine import Database

_T = TypeVar("_T")
_NANOSECONDS = 1_000_000_000


def add_revocation(
    connection: Connection, actor: Actor, revocation: Revocation, *, is_revoked: bool = True
) -> RevocationEntry:
    """Revoke or restore a digest in the open transaction, and notify all servers.

    Returns the current entry. Nothing is added if the digest already has this state; the number is
    0 if it was never revoked.
    """
    if connection.dialect.name == "postgresql":  # SQLite has only one writer
        # Numbers become visible in their order.
        connection.execute(text("LOCK TABLE revocations IN SHARE ROW EXCLUSIVE MODE"))
    latest = find_revocation(connection, revocation.digest)
    if latest is None:
        latest = RevocationEntry(0, *revocation, by=actor.name, is_revoked=False)
    if latest.is_revoked is is_revoked:
        return latest
    last = connection.execute(select(func.max(revocations.c.number))).scalar() or 0
    # Clients reject a list with a lower number. After the restore of an old backup, a new entry
    # needs a number that no client has seen yet: seconds since 1970.
    number = max(int(last) + 1, parse_time(revocation.at) // _NANOSECONDS)
    entry = RevocationEntry(number, *revocation, by=actor.name, is_revoked=is_revoked)
    values = {**entry._asdict(), "is_revoked": int(is_revoked)}
    connection.execute(insert(revocations), values)
    add_audit_row(
        connection,
        actor,
        "skill.revoke" if is_revoked else "skill.restore",
        revocation.skill or revocation.digest,
        at=revocation.at,
        digest_after=revocation.digest,
        detail={"reason": revocation.reason, "instead": revocation.instead},
    )
    publish_event(connection, REVOCATIONS_CHANGED, revocation.at)
    return entry


def find_revocation(connection: Connection, digest: str) -> RevocationEntry | None:
    """Return the latest entry about a digest, or None."""
    query = (
        select_fields(revocations)
        .where(revocations.c.digest == digest)
        .order_by(revocations.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else _to_entry(row)


class SqlRevocationTable:
    """Revocations in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[RevocationEntry]:
        """Return all entries, oldest first. Raises: DatabaseUnavailable."""
        query = select_fields(revocations).order_by(revocations.c.number)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [*map(_to_entry, rows)]

    def write(self, work: Callable[[Connection], _T]) -> _T:
        """Run a write transaction. Raises: DatabaseUnavailable, DatabaseFull."""
        return self._database.write(work)


def _to_entry(row: RowMapping) -> RevocationEntry:
    return RevocationEntry(**{**row, "is_revoked": bool(row["is_revoked"])})
