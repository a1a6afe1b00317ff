"""Events in a table: changes to workspaces, and messages between servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select, text

from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.rows import to_event_row
from skillhall._internal.storage.sql.tables import events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from skillhall._internal.storage.sql.engine import Database

NOTIFY_CHANNEL = "skillhall_events"  # for PostgreSQL's NOTIFY
MAX_EVENTS = 100_000
_PRUNE_INTERVAL = 1_000  # events between deletions of old ones
# PostgreSQL numbers events at the commit, under this lock: a reader never sees a number before all
# lower ones are committed. Only the server holds the lock, so a frozen process cannot keep it.
EVENT_LOCK = 7_223_446_120_932
# Until then, an event has a negative number, which no other transaction can see.
_PROVISIONAL_SEQ = -func.nextval(func.pg_get_serial_sequence("events", "seq"))


def add_events(connection: Connection, *new: Event) -> int:
    """Insert events and return a number that no other call returns.

    SQLite numbers events when they are inserted; the result is the number of the last one.
    PostgreSQL numbers them at the commit, then notifies other connections.
    """
    is_postgres = connection.dialect.name == "postgresql"
    statement = insert(events).returning(events.c.seq)
    if is_postgres:
        statement = statement.values(seq=_PROVISIONAL_SEQ)
    last = 0
    for event in new:
        last = abs(int(connection.execute(statement, to_event_row(event)).scalar_one()))
    # On PostgreSQL, each event uses up two numbers, and only this one is known here.
    if last % _PRUNE_INTERVAL < 2 * len(new):
        is_old = events.c.seq.between(1, last - MAX_EVENTS)
        connection.execute(delete(events).where(is_old))
    if is_postgres:
        notify = "SELECT pg_notify(:channel, '')"
        connection.execute(text(notify), {"channel": NOTIFY_CHANNEL})
    return last


def publish_event(connection: Connection, kind: str, at: str) -> None:
    """Insert an event without subject or session, for other servers."""
    add_events(connection, Event(kind, "", "", 0, {}, at))


def read_event_range(connection: Connection) -> tuple[int, int]:
    """Return the first and last stored sequence number; zeros if there are no events."""
    first, last = connection.execute(select(func.min(events.c.seq), func.max(events.c.seq))).one()
    return int(first or 0), int(last or 0)


class SqlOutbox:
    """Publishes events about changes outside the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, kind: str, data: Mapping[str, str | int | None], at: str) -> None:
        """Publish an event to all servers. Raises: DatabaseUnavailable, DatabaseFull."""
        event = Event(kind, "", "", 0, data, at)
        self._database.write(lambda connection: add_events(connection, event))
