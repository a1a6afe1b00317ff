"""Databases that hang, and processes that are frozen in a transaction, do not stop the others."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection

from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql import postgres_connection
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url, lift_limits
from skillhall._internal.storage.sql.events.event_rows import EVENT_LOCK, add_events
from skillhall._internal.storage.sql.timeouts import DatabaseTimeouts
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP, truncate_tables
from tests.support.replicas import DEADLINE, wait_until
from tests.support.workspaces import make_workspace

SHORT = DatabaseTimeouts(2.0)
LONG = DatabaseTimeouts(10.0 * DEADLINE)


@contextmanager
def open_postgres(url: str, timeouts: DatabaseTimeouts = LONG) -> Iterator[Database]:
    with closing(Database(url, TIMESTAMP, timeouts=timeouts)) as database:
        truncate_tables(url)
        yield database


def add_event(connection: Connection, kind: str) -> None:
    add_events(connection, Event(kind, "", "", 0, {}, TIMESTAMP))


def list_kinds(database: Database, after: int = 0) -> list[str]:
    events = SqlWorkspaceStore(database, actor=ACTOR).read(lambda read: read.events(after, 100))
    return [event.kind for event in events]


def backend_pid(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_open_transaction_neither_delays_nor_hides_events(postgres: str) -> None:
    with open_postgres(postgres) as database:

        def write_twice(connection: Connection) -> None:
            for kind in ("slow-1", "slow-2"):
                add_event(connection, kind)
            thread = threading.Thread(
                target=database.write, args=[lambda inner: add_event(inner, "fast")]
            )
            thread.start()
            thread.join(DEADLINE)
            assert list_kinds(database) == ["fast"]

        database.write(write_twice)
        last = SqlWorkspaceStore(database, actor=ACTOR).read(lambda read: read.events(0, 1))[0].seq
        # A reader that has seen the event of the later transaction still gets the others.
        assert list_kinds(database, last) == ["slow-1", "slow-2"]
        assert list_kinds(database) == ["fast", "slow-1", "slow-2"]


def test_lock_of_a_frozen_process_is_released(postgres: str) -> None:
    with open_postgres(postgres) as database:
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
        session = workspace.sessions.create("one").id
        with closing(postgres_connection.connect(SHORT, postgres)) as holder:
            holder.execute("SELECT id FROM sessions FOR UPDATE")
            workspace.blocks.add(session, "note", "Hello.")
            with pytest.raises(psycopg.Error):  # the server has ended the idle transaction
                holder.execute("SELECT 1")


def test_wait_for_a_lock_ends_with_an_error(postgres: str) -> None:
    with (
        open_postgres(postgres) as patient,
        closing(Database(postgres, TIMESTAMP, timeouts=SHORT)) as database,
    ):
        session = make_workspace(SqlWorkspaceStore(patient, actor=ACTOR)).sessions.create("one").id
        impatient = make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "other")

        def lock_session(connection: Connection) -> None:
            connection.exec_driver_sql("SELECT id FROM sessions FOR UPDATE")
            with pytest.raises(DatabaseUnavailable, match="other writers"):
                impatient.blocks.add(session, "note", "Hello.")

        patient.write(lock_session)


def test_server_that_stops_responding_ends_the_call(postgres: str) -> None:
    with open_postgres(postgres, SHORT) as database:

        def freeze(connection: Connection) -> None:
            with frozen(backend_pid(connection)):
                connection.exec_driver_sql("SELECT 1")

        with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
            database.read(freeze)
        assert database.read(backend_pid)


def test_open_connection_that_stopped_responding_is_replaced(postgres: str) -> None:
    with open_postgres(postgres, SHORT) as database:
        with frozen(database.read(backend_pid)):
            database.write(lambda connection: add_event(connection, "arrived"))
        assert list_kinds(database) == ["arrived"]


def test_lifted_limits_apply_to_one_transaction(postgres: str) -> None:
    def read_limits(connection: Connection) -> list[str]:
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        return [str(connection.exec_driver_sql(f"SHOW {name}").scalar_one()) for name in names]

    def sleep_without_limits(connection: Connection) -> list[str]:
        lift_limits(connection)
        connection.exec_driver_sql("SELECT pg_sleep(1)")  # longer than any limit
        return read_limits(connection)

    with open_postgres(postgres, DatabaseTimeouts(1)) as database:
        limited = ["750ms", "600ms", "300ms"]
        assert database.read(read_limits) == limited
        assert database.write(sleep_without_limits) == ["0", "0", "300ms"]
        assert database.read(read_limits) == limited
        with pytest.raises(DatabaseUnavailable):
            database.read(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(1)"))


@pytest.mark.parametrize(
    "statement",
    [f"SELECT pg_advisory_xact_lock({EVENT_LOCK})", "LOCK TABLE events IN EXCLUSIVE MODE"],
)
def test_blocked_writes_are_a_problem(postgres: str, statement: str) -> None:
    with open_postgres(postgres, SHORT) as database:
        assert database.find_problem() == ""
        with psycopg.connect(postgres) as holder:
            holder.execute(statement.encode())
            assert "conflict with other writers" in database.find_problem()
        assert database.find_problem() == ""


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Iterator[tuple[Database, Path]]:
    path = tmp_path / "test.db"
    url = build_sqlite_url(str(path))
    with closing(Database(url, TIMESTAMP, timeouts=DatabaseTimeouts(0.5))) as database:
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
        session = workspace.sessions.create("one").id
        for _ in range(20):
            workspace.blocks.add(session, "note", "x" * 5000)
        assert database.find_problem() == ""
        yield database, path


def test_locked_file_is_a_problem(sqlite_file: tuple[Database, Path]) -> None:
    database, path = sqlite_file
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert "locked by other writers" in database.find_problem()
        with pytest.raises(DatabaseUnavailable):
            database.write(lambda connection: add_event(connection, "late"))
        writer.execute("ROLLBACK")
    assert database.find_problem() == ""


def test_damaged_file_is_a_problem(sqlite_file: tuple[Database, Path]) -> None:
    database, path = sqlite_file
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    page = 4096
    # The first page is intact: whoever opens the file sees a database.
    path.write_bytes(data[:page] + b"\xff" * (len(data) - page))
    wait_until(lambda: "damaged" in database.find_problem())


def test_deleted_file_is_a_problem(sqlite_file: tuple[Database, Path]) -> None:
    database, path = sqlite_file
    path.unlink()
    assert "its file was deleted" in database.find_problem()
