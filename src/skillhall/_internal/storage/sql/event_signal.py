"""Who tells that events came: the process itself, the file's version, or PostgreSQL."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from skillhall._internal.storage.sql.engine import POSTGRES_CONNECT_ARGS
from skillhall._internal.storage.sql.workspace_writes import NOTIFY_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from skillhall._internal.storage.sql.engine import Database

POLL_INTERVAL = 0.1  # seconds between looks at an SQLite file that other processes may change
_WAIT_TIMEOUT = 0.5  # seconds that a wait for PostgreSQL takes at most
_RECONNECT_DELAY = 1.0  # seconds after a lost connection


class EventSignal(Protocol):
    """Waits for changes that may bring events."""

    def wait(self) -> bool:
        """Whether something may have changed; it returns soon in any case."""

    def close(self) -> None:
        """Wait no more."""


def open_event_signal(database: Database) -> EventSignal:
    """The watch that fits the database."""
    return PostgresEventSignal(database) if database.is_postgres else SqliteEventSignal(database)


class SqliteEventSignal:
    """Changes of this process are told at once; those of others change the file's version."""

    def __init__(self, database: Database) -> None:
        self._changed = threading.Event()
        self._unsubscribe: Callable[[], None] = database.on_change(self._changed.set)
        self._path = database.path
        self._connection: sqlite3.Connection | None = None
        self._version = self._read_data_version()

    def wait(self) -> bool:
        """Whether something was changed, by anybody."""
        was_told = self._changed.wait(POLL_INTERVAL)
        self._changed.clear()
        version = self._read_data_version()
        is_other = version != self._version
        self._version = version
        return was_told or is_other

    def close(self) -> None:
        """Wait no more."""
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
    """PostgreSQL tells everybody who listens; a lost connection counts as a change."""

    def __init__(self, database: Database) -> None:
        self._connection_url = database.connection_url
        self._connection: Connection | None = None
        self._closed = threading.Event()
        self._connect()

    def wait(self) -> bool:
        """Whether PostgreSQL told of a change, or may have done so while nobody listened."""
        from psycopg import Error  # noqa: PLC0415 - only where PostgreSQL is used

        if self._connection is None:
            self._closed.wait(_RECONNECT_DELAY)
            return self._connect()
        try:
            return any(True for _ in self._connection.notifies(timeout=_WAIT_TIMEOUT, stop_after=1))
        except Error:
            self._disconnect()
            return False

    def close(self) -> None:
        """Wait no more."""
        self._closed.set()
        self._disconnect()

    def _connect(self) -> bool:
        import psycopg  # noqa: PLC0415 - only where PostgreSQL is used

        try:
            self._connection = psycopg.connect(
                self._connection_url, autocommit=True, **POSTGRES_CONNECT_ARGS
            )
            self._connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
        except psycopg.Error:
            self._disconnect()
            return False
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
