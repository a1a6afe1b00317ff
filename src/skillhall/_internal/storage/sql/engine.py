"""Database connection: engine setup, transactions, retries and error translation."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from skillhall._internal.cache import AdaptiveCache
from skillhall._internal.storage.sql.events.event_rows import EVENT_LOCK
from skillhall._internal.storage.sql.migrations import LATEST_VERSION, current_version, migrate
from skillhall._internal.storage.sql.timeouts import DatabaseTimeouts
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
_ATTEMPTS = 4
_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON")
_FILE_CHECK_LIMIT = 1.0  # seconds; the rest of a very large file is not checked for damage
_FILE_CHECK_STEPS = 10_000  # instructions of SQLite between two looks at the clock
# Writes a row, and waits for whatever would block writers, in one statement and so without a
# transaction that could stay open. Servers that check at the same time use different rows.
_POSTGRES_WRITE_CHECK = """WITH written AS (
    UPDATE schema_migrations SET applied_at = applied_at WHERE version =
        (SELECT version FROM schema_migrations LIMIT 1 FOR UPDATE SKIP LOCKED)
), locked AS (DELETE FROM events WHERE seq IS NULL)
SELECT pg_advisory_xact_lock_shared(:lock)"""
_SQLITE_WRITE_CHECK = "UPDATE schema_migrations SET applied_at = applied_at WHERE version = 1"
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # sessions are private
# PostgreSQL's codes for serialization failure, deadlock and unavailable lock.
_RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})
_DISK_FULL_STATE = "53100"
_CANCELED_STATE = "57014"
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


_DEFAULT_TIMEOUTS = DatabaseTimeouts()


class Database:
    """Database with the latest schema. Thread-safe; call `close` when done."""

    def __init__(
        self,
        url: str | URL,
        at: str,
        *,
        allow_outage: bool = False,
        timeouts: DatabaseTimeouts = _DEFAULT_TIMEOUTS,
    ) -> None:
        """Open the database and migrate it; `at` is recorded as the time of migrations.

        With `allow_outage`, a database that is down is opened on first use.
        Raises: ConfigInvalid, DatabaseUnavailable, DatabaseNewer.
        """
        self._url = parse_database_url(url)
        self.is_postgres: bool = self._url.get_backend_name() == "postgresql"
        self.timeouts = timeouts
        make_engine = _postgres_engine if self.is_postgres else _sqlite_engine
        self._engine = make_engine(self._url, timeouts)
        read_options = _POSTGRES_READ_OPTIONS if self.is_postgres else {_READ_ONLY: True}
        self._read_engine = self._engine.execution_options(**read_options)
        # Reading the complete file is expensive, so large ones are checked less often.
        self._file_problem = AdaptiveCache(lambda: _find_file_problem(self.path))
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
        """Path of the SQLite file; for PostgreSQL, the name of the database."""
        return self._url.database or ""

    @property
    def location(self) -> str:
        """Host, port and name, which identify the database without credentials."""
        host = self._url.host or self._url.query.get("host", "")
        return f"{host}:{self._url.port or ''}/{self._url.database}"

    def find_problem(self) -> str:
        """Return why the database cannot be used right now, or "" if it can.

        This tests a write; an SQLite file is also checked for damage.
        """
        try:
            self._open()
            self._check_writing()
        except (DatabaseUnavailable, DatabaseFull) as error:
            return str(error)
        except DBAPIError:
            return str(DatabaseUnavailable("its tables are missing or damaged"))
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

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`.
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
        # While the database hangs, requests must not wait for each other's attempts.
        if not self._open_lock.acquire(timeout=self.timeouts.pool):
            raise DatabaseUnavailable("it does not respond")
        try:
            if not self._is_open:
                if not self.is_postgres:
                    _create_file(self.path)
                # A database that is up to date is opened without waiting for writers.
                if self._run_read(current_version) != LATEST_VERSION:
                    self._run_write(self._migrate)
                self._is_open = True
        finally:
            self._open_lock.release()

    def _migrate(self, connection: Connection) -> None:
        lift_limits(
            connection
        )  # it may change large tables, or wait for another server's migration
        migrate(connection, self._opened_at)

    def _run_read(self, work: Callable[[Connection], _T]) -> _T:
        try:
            with self._read_engine.begin() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise _to_database_error(error) from None

    def _run_write(self, work: Callable[[Connection], _T]) -> _T:
        started = time.monotonic()
        for attempt in count(1):
            try:
                with self._engine.begin() as connection:
                    result = work(connection)
                break
            except SQLAlchemyError as error:
                elapsed = time.monotonic() - started
                has_time = self.timeouts.allows_retry(elapsed, is_postgres=self.is_postgres)
                if attempt == _ATTEMPTS or not has_time or not _is_retryable(error):
                    raise _to_database_error(error) from None
        with self._lock:
            callbacks = [*self._callbacks]
        for callback in callbacks:
            callback()
        return result

    def _check_writing(self) -> None:
        """Write to the database. Raises: DatabaseUnavailable, DatabaseFull, DBAPIError."""
        is_postgres = self.is_postgres
        statement = _POSTGRES_WRITE_CHECK if is_postgres else _SQLITE_WRITE_CHECK
        options = {"isolation_level": "AUTOCOMMIT"} if is_postgres else {}
        try:
            with self._engine.execution_options(**options).begin() as connection:
                connection.execute(text(statement), {"lock": EVENT_LOCK} if is_postgres else {})
        except SQLAlchemyError as error:
            raise _to_database_error(error) from None
        if not is_postgres:
            if not os.path.exists(self.path):  # open connections still write to it
                raise DatabaseUnavailable("its file was deleted")
            if problem := self._file_problem.get():
                raise DatabaseUnavailable(problem)


def lift_limits(connection: Connection) -> None:
    """Let a transaction take as long as it needs, for example to copy all rows.

    The server still ends it if it is idle, for example because this process is frozen.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.connection.dbapi_connection.response_limit = None  # type: ignore[union-attr]


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


def _postgres_engine(url: URL, timeouts: DatabaseTimeouts) -> Engine:
    try:
        engine = create_engine(url, pool_size=10, pool_timeout=timeouts.pool)
        from skillhall._internal.storage.sql import (  # noqa: PLC0415 - the driver is an extra
            postgres_connection,
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise ConfigInvalid(
            URL_VARIABLE, "PostgreSQL needs a driver", "pip install 'skillhall[postgres]'"
        ) from None

    def connect(_dialect: object, _record: object, arguments: list[Any], named: Any) -> object:  # noqa: ANN401 - dict
        return postgres_connection.connect(timeouts, *arguments, **named)

    def check(connection: postgres_connection.LimitedConnection, *_: object) -> None:
        # Not `pool_pre_ping`, which would use up the time that a new connection needs.
        try:
            connection.ping(timeouts.ping)
        except postgres_connection.Error:
            raise InvalidatePoolError from None

    def restore_limit(connection: postgres_connection.LimitedConnection, *_: object) -> None:
        connection.response_limit = timeouts.response

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "checkout", check)
    event.listen(engine, "reset", restore_limit)
    return engine


def _sqlite_engine(url: URL, timeouts: DatabaseTimeouts) -> Engine:
    engine = create_engine(
        url,
        connect_args={"check_same_thread": False, "timeout": timeouts.busy},
        pool_timeout=timeouts.pool,
    )
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _find_file_problem(path: str) -> str:
    """Return what is wrong with an SQLite file, or "" if no damage is found.

    A new connection is used, because open ones have cached pages.
    """
    deadline = time.monotonic() + _FILE_CHECK_LIMIT
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True)
        ) as connection:
            connection.set_progress_handler(
                lambda: int(time.monotonic() > deadline), _FILE_CHECK_STEPS
            )
            result = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        code = _sqlite_code(error)
        # An interrupted check has found no damage up to the limit.
        is_interrupted = code == sqlite3.SQLITE_INTERRUPT
        return "" if is_interrupted else _SQLITE_PROBLEMS.get(code, "its file cannot be read")
    return "" if result == ("ok",) else _SQLITE_PROBLEMS[sqlite3.SQLITE_CORRUPT]


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
        elif state == _CANCELED_STATE:
            problem = "a statement took too long"
    if is_full:
        return DatabaseFull()
    return DatabaseUnavailable(problem) if problem else error
