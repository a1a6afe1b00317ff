"""Signals for new events: SQLite's data version, or PostgreSQL's NOTIFY."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.storage.sql.events.event_rows import NOTIFY_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from skillhall._internal.storage.sql.engine import Database

POLL_INTERVAL = 0.1  # seconds between checks of an SQLite file for changes by other processes
_WAIT_TIMEOUT = 0.5  # seconds
_RECONNECT_DELAY = 1.0  # seconds


def open_event_signal(database: Database) -> SqliteEventSignal | PostgresEventSignal:
    """Open the signal for the kind of database."""
    return PostgresEventSignal(database) if database.is_postgres else SqliteEventSignal(database)


class SqliteEventSignal:
    """Signals writes to an SQLite file.

    Callbacks report the writes of this process, `PRAGMA data_version` those of other processes.
    """

    def __init__(self, database: Database) -> None:
        self._changed = threading.Event()
        self._unsubscribe: Callable[[], None] = database.on_change(self._changed.set)
        self._path = database.path
        self._connection: sqlite3.Connection | None = None
        self._version = self._read_data_version()

    def wait(self) -> bool:
        """Wait briefly; return whether the database changed."""
        was_notified = self._changed.wait(POLL_INTERVAL)
        self._changed.clear()
        version = self._read_data_version()
        is_changed = version != self._version
        self._version = version
        return was_notified or is_changed

    def close(self) -> None:
        """Stop waiting and close the connection."""
        self._unsubscribe()
        self._changed.set()
        if self._connection is not None:
            self._connection.close()

    def _read_data_version(self) -> int:
        with contextlib.suppress(sqlite3.Error):
            self._connection = self._connection or sqlite3.connect(
                f"file:{quote(self._path)}?mode=rw",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
            )
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        return -1


class PostgresEventSignal:
    """Listens to PostgreSQL's notifications.

    A reconnect counts as a notification, because some may have been missed.
    """

    def __init__(self, database: Database) -> None:
        # The driver is an extra, so it is imported only where PostgreSQL is used.
        from skillhall._internal.storage.sql import postgres_connection  # noqa: PLC0415

        self._driver = postgres_connection
        self._connection_url = database.connection_url
        self._timeouts = database.timeouts
        self._connection: Connection | None = None
        self._closed = threading.Event()
        self._connect()

    def wait(self) -> bool:
        """Wait briefly; return whether there was a notification or a reconnect."""
        if self._connection is None:
            self._closed.wait(_RECONNECT_DELAY)
            return self._connect()
        try:
            return any(True for _ in self._connection.notifies(timeout=_WAIT_TIMEOUT, stop_after=1))
        except self._driver.Error:
            self._disconnect()
            return False

    def close(self) -> None:
        """Stop waiting and close the connection."""
        self._closed.set()
        self._disconnect()

    def _connect(self) -> bool:
        try:
            self._connection = self._driver.connect(
                self._timeouts, self._connection_url, autocommit=True
            )
            self._connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
        except self._driver.Error:
            self._disconnect()
            return False
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
