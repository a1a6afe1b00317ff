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
# Serializes event numbers: a reader never sees a number before all lower ones are committed.
_LOCK = "SELECT pg_advisory_xact_lock(7223446120932)"


def add_events(connection: Connection, *new: Event) -> int:
    """Insert events and return the sequence number of the last one.

    PostgreSQL notifies other connections after the commit.
    """
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        connection.execute(text(_LOCK))
    last = 0
    for event in new:
        result = connection.execute(insert(events), to_event_row(event))
        last = int(result.inserted_primary_key[0]) if result.inserted_primary_key else 0
        if last % _PRUNE_INTERVAL == 0:
            connection.execute(delete(events).where(events.c.seq <= last - MAX_EVENTS))
    if is_postgres:
        parameters = {"channel": NOTIFY_CHANNEL, "seq": str(last)}
        connection.execute(text("SELECT pg_notify(:channel, :seq)"), parameters)
    return last


def publish_event(connection: Connection, kind: str, at: str) -> None:
    """Insert an event without subject or session, for other servers."""
    add_events(connection, Event(kind, "", "", 0, {}, at))


def read_event_range(connection: Connection) -> tuple[int, int]:
    """Return the sequence numbers of the first and last stored event, or zeros."""
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
