"""Database connection: engine setup, transactions, retries and error translation."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from skillhall._internal.storage.sql.migrations import LATEST_VERSION, current_version, migrate
from skillhall.errors import ConfigInvalid, DatabaseFull, DatabaseNewer, DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Engine

_T = TypeVar("_T")

URL_VARIABLE = "SKILLHALL_DATABASE_URL"
_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
# Four attempts with 2.5 seconds each: callers get an error after ten seconds of contention.
_ATTEMPTS = 4
_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=2500")
# An unresponsive PostgreSQL is noticed after seconds; TCP's default is two hours.
POSTGRES_CONNECT_ARGS: Mapping[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
}
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # sessions are private
# PostgreSQL's codes for serialization failure, deadlock and unavailable lock.
_RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})
_DISK_FULL_STATE = "53100"
# PostgreSQL's classes of codes: connection, authorization, unknown database, resources, shutdown,
# system error, read-only.
_UNAVAILABLE_STATE_CLASSES = ("08", "28", "3D", "53", "57", "58", "25")
_SQLITE_PROBLEMS = {
    sqlite3.SQLITE_BUSY: "it is locked by other writers",
    sqlite3.SQLITE_LOCKED: "it is locked by other writers",
    sqlite3.SQLITE_CORRUPT: "its file is damaged",
    sqlite3.SQLITE_NOTADB: "its file is not an SQLite database",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
    sqlite3.SQLITE_READONLY: "its file is read-only",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_PERM: "its file cannot be opened",
}
_READ_ONLY = "skillhall_read_only"
_POSTGRES_READ_OPTIONS: Mapping[str, Any] = {
    "isolation_level": "REPEATABLE READ",
    "postgresql_readonly": True,
}


class Database:
    """Database with the latest schema. Thread-safe; call `close` when done."""

    def __init__(self, url: str | URL, at: str, *, allow_outage: bool = False) -> None:
        """Open the database and migrate it; `at` is recorded as the time of migrations.

        With `allow_outage`, a database that is down is opened on first use.
        Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
        """
        self._url = parse_database_url(url)
        self.is_postgres = self._url.get_backend_name() == "postgresql"
        self._engine = (
            _postgres_engine(self._url) if self.is_postgres else _sqlite_engine(self._url)
        )
        read_options = _POSTGRES_READ_OPTIONS if self.is_postgres else {_READ_ONLY: True}
        self._read_engine = self._engine.execution_options(**read_options)
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._open_lock = threading.Lock()
        self._opened_at = at
        self._is_open = False
        try:
            self._open()
        except DatabaseUnavailable as error:
            if not allow_outage or isinstance(error, DatabaseNewer):
                self.close()
                raise
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """File of an SQLite database."""
        return self._url.database or ""

    @property
    def location(self) -> str:
        """Host, port and name, which identify the database without credentials."""
        host = self._url.host or self._url.query.get("host", "")
        return f"{host}:{self._url.port or ''}/{self._url.database}"

    def find_problem(self) -> str:
        """Return why the database cannot be used at this moment, or ""."""
        try:
            self.read(lambda connection: connection.exec_driver_sql("SELECT 1"))
        except DatabaseUnavailable as error:
            return str(error)
        return ""

    @property
    def connection_url(self) -> str:
        """URL for a separate connection by the driver. Contains the password."""
        plain = self._url.set(drivername="postgresql")
        return plain.render_as_string(hide_password=False)

    def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run a read transaction on a consistent snapshot. Raises: DatabaseUnavailable."""
        self._open()
        return self._run_read(work)

    def write(self, work: Callable[[Connection], _T]) -> _T:
        """Run a write transaction; after a conflict, `work` is called again.

        Raises: DatabaseUnavailable, DatabaseFull, and errors of `work`.
        """
        self._open()
        return self._run_write(work)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after this process writes; return a function to unsubscribe it."""
        with self._lock:
            self._callbacks.append(callback)

        def stop() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return stop

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _open(self) -> None:
        """Create and migrate the database on first use."""
        if self._is_open:
            return
        with self._open_lock:
            if not self._is_open:
                if not self.is_postgres:
                    _create_file(self.path)
                # A database that is up to date is opened without waiting for writers.
                if self._run_read(current_version) != LATEST_VERSION:
                    self._run_write(lambda connection: migrate(connection, self._opened_at))
                self._is_open = True

    def _run_read(self, work: Callable[[Connection], _T]) -> _T:
        try:
            with self._read_engine.begin() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise _to_database_error(error) from None

    def _run_write(self, work: Callable[[Connection], _T]) -> _T:
        for attempt in count(1):
            try:
                with self._engine.begin() as connection:
                    result = work(connection)
                break
            except SQLAlchemyError as error:
                if attempt == _ATTEMPTS or not _is_retryable(error):
                    raise _to_database_error(error) from None
        with self._lock:
            callbacks = [*self._callbacks]
        for callback in callbacks:
            callback()
        return result


def build_sqlite_url(path: str) -> URL:
    """Return the URL of an SQLite file, whose path may contain any characters."""
    return URL.create("sqlite", database=path)


def parse_database_url(text: str | URL) -> URL:
    """Parse a database URL.

    Raises: ConfigInvalid. Its message omits the URL, which may contain a password.
    """
    try:
        url = make_url(text)
        driver = _DRIVERS.get(url.drivername.partition("+")[0])
    except (ArgumentError, ValueError):
        driver = None
    if driver is None:
        raise ConfigInvalid(
            URL_VARIABLE,
            "it is not a database URL",
            "write sqlite:////path/to/file.db or postgresql://user@host/name",
        )
    if driver.startswith("sqlite") and url.database in (None, "", ":memory:"):
        raise ConfigInvalid(
            URL_VARIABLE, "it does not name a file", "write sqlite:////path/to/file.db"
        )
    return url.set(drivername=driver)


def _postgres_engine(url: URL) -> Engine:
    try:
        return create_engine(
            url, pool_pre_ping=True, pool_size=10, connect_args={**POSTGRES_CONNECT_ARGS}
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise ConfigInvalid(
            URL_VARIABLE, "PostgreSQL needs a driver", "pip install 'skillhall[postgres]'"
        ) from None


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _create_file(path: str) -> None:
    """Create the file, readable only by its owner."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), _FOLDER_MODE, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE))
    except OSError as error:
        problem = (error.strerror or "unknown error").lower()
        raise DatabaseUnavailable(f"its file cannot be opened: {problem}") from None


def _configure_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # Python's own transactions begin with the first write and would exclude reads before it.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    is_read_only = connection.get_execution_options().get(_READ_ONLY)
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")


def _is_retryable(error: SQLAlchemyError) -> bool:
    """Whether the same transaction may succeed on a retry."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if isinstance(cause, sqlite3.Error):
        return _sqlite_code(cause) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(cause, "sqlstate", None) in _RETRYABLE_STATES


def _sqlite_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended code


def _to_database_error(error: SQLAlchemyError) -> Exception:
    """Translate a database error, without its statement and values.

    An error that is neither an outage nor a conflict is returned unchanged.
    """
    if isinstance(error, PoolTimeout):
        return DatabaseUnavailable("all connections are busy")
    if not isinstance(error, DBAPIError):
        return error
    if isinstance(error.orig, sqlite3.Error):
        code = _sqlite_code(error.orig)
        problem = _SQLITE_PROBLEMS.get(code, "")
        is_full = code == sqlite3.SQLITE_FULL
    else:
        state = getattr(error.orig, "sqlstate", None)
        is_full = state == _DISK_FULL_STATE
        is_gone = state is None or state[:2] in _UNAVAILABLE_STATE_CLASSES
        problem = "it cannot be reached" if is_gone else ""
        if state in _RETRYABLE_STATES:
            problem = "conflict with other writers"
    if is_full:
        return DatabaseFull()
    return DatabaseUnavailable(problem) if problem else error
