"""Who tells that events came: the process itself, the file's version, or PostgreSQL."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from skillhall._internal.storage.sql.engine import POSTGRES_LINE
from skillhall._internal.storage.sql.workspace_writes import CHANNEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from skillhall._internal.storage.sql.engine import Database

POLL = 0.1  # seconds between looks at an SQLite file that other processes may change
_PATIENCE = 0.5  # seconds that a wait for PostgreSQL takes at most
_RECONNECT = 1.0  # seconds after a lost connection


class Watch(Protocol):
    """Waits for changes that may bring events."""

    def wait(self) -> bool:
        """Whether something may have changed; it returns soon in any case."""

    def close(self) -> None:
        """Wait no more."""


def open_watch(database: Database) -> Watch:
    """The watch that fits the database."""
    return PostgresWatch(database) if database.is_postgres else SqliteWatch(database)


class SqliteWatch:
    """Changes of this process are told at once; those of others change the file's version."""

    def __init__(self, database: Database) -> None:
        self._told = threading.Event()
        self._stop: Callable[[], None] = database.on_change(self._told.set)
        self._path = database.path
        self._line: sqlite3.Connection | None = None
        self._version = self._look()

    def wait(self) -> bool:
        """Whether something was changed, by anybody."""
        was_told = self._told.wait(POLL)
        self._told.clear()
        version = self._look()
        is_other = version != self._version
        self._version = version
        return was_told or is_other

    def close(self) -> None:
        """Wait no more."""
        self._stop()
        self._told.set()
        if self._line is not None:
            self._line.close()

    def _look(self) -> int:
        with contextlib.suppress(sqlite3.Error):
            self._line = self._line or sqlite3.connect(
                f"file:{quote(self._path)}?mode=rw",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
            )
            return int(self._line.execute("PRAGMA data_version").fetchone()[0])
        return -1


class PostgresWatch:
    """PostgreSQL tells everybody who listens; a lost connection counts as a change."""

    def __init__(self, database: Database) -> None:
        self._text = database.connection_text
        self._line: Connection | None = None
        self._ended = threading.Event()
        self._connect()

    def wait(self) -> bool:
        """Whether PostgreSQL told of a change, or may have done so while nobody listened."""
        from psycopg import Error  # noqa: PLC0415 - only where PostgreSQL is used

        if self._line is None:
            self._ended.wait(_RECONNECT)
            return self._connect()
        try:
            return any(True for _ in self._line.notifies(timeout=_PATIENCE, stop_after=1))
        except Error:
            self._disconnect()
            return False

    def close(self) -> None:
        """Wait no more."""
        self._ended.set()
        self._disconnect()

    def _connect(self) -> bool:
        import psycopg  # noqa: PLC0415 - only where PostgreSQL is used

        try:
            self._line = psycopg.connect(self._text, autocommit=True, **POSTGRES_LINE)
            self._line.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error:
            self._disconnect()
            return False
        return True

    def _disconnect(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
