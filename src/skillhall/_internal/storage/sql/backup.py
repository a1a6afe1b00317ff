"""Tables in a backup. SQLite and PostgreSQL can restore each other's backups."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import MetaData, delete, func, insert, select, text
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, ProgrammingError

from skillhall._internal.storage.audit.audit_chain import read_head
from skillhall._internal.storage.backup_folders import (
    FolderPart,
    RestoreJournal,
    StagedPart,
    lock_parts,
)
from skillhall._internal.storage.backup_format import BackupHeader, FileChunk, TableStart
from skillhall._internal.storage.records import DATABASE_RESTORED, Event
from skillhall._internal.storage.sql.audit_rows import add_audit_row, allow_audit_deletion
from skillhall._internal.storage.sql.backup_validation import validate_row
from skillhall._internal.storage.sql.engine import lift_limits
from skillhall._internal.storage.sql.events.event_rows import add_events, read_event_range
from skillhall._internal.storage.sql.file_rows import lock_files
from skillhall._internal.storage.sql.migrations import (
    LATEST_VERSION,
    lock_schema,
    migrate,
)
from skillhall._internal.storage.sql.tables import (
    METADATA,
    audit,
    audit_seals,
    events,
    migrations,
    sign_ins,
    user_links,
)
from skillhall.errors import BackupRejected, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sqlalchemy import Column, Connection, Table

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.backup_format import BackupEntry, BackupWriter
    from skillhall._internal.storage.sql.engine import Database

    HandleChunk = Callable[[Connection, FileChunk], None]

# Tables that a backup leaves out, each with the reason.
LEFT_OUT_TABLES: Mapping[str, str] = {
    migrations.name: "written by migrations during a restore",
    sign_ins.name: "a copied backup must not sign anyone in; users sign in again",
    user_links.name: "a copied backup must not let anyone set a password",
}
_ROWS_PER_QUERY = 500
_BLOBS_PER_QUERY = 8  # a blob has up to 10 MiB
_MAX_BATCH_BYTES = 4 * 1024 * 1024  # of inserted rows
_BLOBS = "blobs"
_MAX_IDLE_SECONDS = 60  # of a transaction; the server then ends it
_KEEP_ALIVE_SECONDS = 5.0
_NEW_DATABASE = '{"database":"new"}'  # data of the event of a restore into a new database


class RestorePlan(NamedTuple):
    """How the rows of a backup replace those of a database."""

    header: BackupHeader
    id: str  # subject of the event, which tells later whether the restore was committed
    at: str
    skipped_tables: frozenset[str] = frozenset()
    actor: Actor | None = None  # for the audit log; None adds no row


def dump_tables(connection: Connection, writer: BackupWriter) -> None:
    """Write all tables to a backup. Memory use does not depend on their size."""
    for table in backup_tables():
        query = select(table).order_by(*table.primary_key.columns)
        count = _BLOBS_PER_QUERY if table.name == _BLOBS else _ROWS_PER_QUERY
        rows = connection.execute(query, execution_options={"yield_per": count})
        writer.write_table(table.name, [column.name for column in table.columns], rows)


def backup_tables() -> list[Table]:
    """Return the tables of a backup, each after those that it refers to."""
    return [table for table in METADATA.sorted_tables if table.name not in LEFT_OUT_TABLES]


def allow_long_transaction(connection: Connection) -> None:
    """Let a transaction that copies everything take as long as it needs.

    Syncing the disk can take longer than the usual limit between two statements.
    """
    lift_limits(connection)
    if connection.dialect.name == "postgresql":
        limit = f"SET LOCAL idle_in_transaction_session_timeout = '{_MAX_IDLE_SECONDS}s'"
        connection.exec_driver_sql(limit)


class KeepAlive:
    """Keeps a transaction from timing out as idle while files are processed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = time.monotonic()

    def send(self) -> None:
        """Send a query if the last one was sent a while ago."""
        if time.monotonic() - self._last > _KEEP_ALIVE_SECONDS:
            self._connection.exec_driver_sql("SELECT 1")
            self._last = time.monotonic()


def has_rows(connection: Connection) -> bool:
    """Whether the database contains data that a restore would delete."""
    logs = (events, audit, audit_seals)
    tables = (table for table in backup_tables() if table not in logs)
    return any(
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
    )


def check_rows(header: BackupHeader, entries: Iterable[BackupEntry]) -> Iterator[BackupEntry]:
    """Check tables and rows while iterating over the entries. Raises: BackupRejected.

    Rows of older schema versions are checked while they are inserted.
    """
    if header.version > LATEST_VERSION:
        message = (
            f"its schema version is {header.version}; "
            f"this version of Skillhall supports up to {LATEST_VERSION}"
        )
        raise BackupRejected(message)
    if header.version < LATEST_VERSION:
        yield from entries
        return
    checker = _TableChecker(METADATA)
    for entry in entries:
        checker.check(entry)
        yield entry
    checker.finish()


def replace_rows(
    connection: Connection,
    plan: RestorePlan,
    entries: Iterable[BackupEntry],
    handle_chunk: HandleChunk | None = None,
) -> int:
    """Replace the content of the database in the open transaction.

    Returns the sequence number of the event that announces the restore. Readers see the old
    content until the commit; writers wait. Raises: BackupRejected.
    """
    allow_long_transaction(connection)
    lock_schema(connection)
    lock_files(connection)
    _lock_tables(connection)
    last_seq, replaced = read_event_range(connection)[1], read_head(connection)
    _empty_tables(connection, plan)
    try:
        _insert_all_rows(connection, plan, entries, handle_chunk)
    except (IntegrityError, DataError, InterfaceError, ProgrammingError):
        raise BackupRejected("it contains invalid or inconsistent rows") from None
    except (UnicodeError, OverflowError, UnsafePath):
        raise BackupRejected("it contains an invalid value") from None
    migrate(connection, plan.at)
    last_id = connection.execute(select(func.max(audit.c.id))).scalar() or 0
    _set_next_number(connection, audit.c.id, int(last_id) + 1)
    if plan.actor is not None:
        # The newest hash of the log that this one replaces, for comparison with logs of servers.
        detail = {"position": replaced.position, "hash": replaced.hash}
        made = plan.header.at
        add_audit_row(connection, plan.actor, "backup.restore", made, at=plan.at, detail=detail)
    return _publish_reset(connection, last_seq, plan)


def recover_restore(database: Database, data_directory: str) -> None:
    """Complete or undo a restore that was interrupted, if there is one.

    Waits for a restore that is still running. Raises: DatabaseUnavailable, OSError.
    """
    journal = RestoreJournal(data_directory)
    if not data_directory or not journal.exists():
        return
    with lock_parts([FolderPart("", data_directory)]):
        record = journal.read()
        if record is not None:
            others = [part for part in record[1] if part.path != data_directory]
            with lock_parts(others):
                finish_restore(database, journal)


def finish_restore(database: Database, journal: RestoreJournal) -> None:
    """Move restored files into place if the restore was committed, else delete them.

    Call it with the folders locked. Raises: DatabaseUnavailable, OSError.
    """
    record = journal.read()
    if record is None:
        return
    restore_id, parts = record
    query = select(events.c.data).where(
        events.c.kind == DATABASE_RESTORED, events.c.subject == restore_id
    )
    data = database.read(lambda connection: connection.execute(query).scalar())
    staged_parts = [StagedPart(part, restore_id) for part in parts]
    if data is not None:  # the database was committed
        for staged in staged_parts:
            staged.apply()
    if [staged for staged in staged_parts if not staged.discard()]:
        return  # tried again with the next start
    journal.delete()
    if data == _NEW_DATABASE:
        delete_event = delete(events).where(events.c.subject == restore_id)
        database.write(lambda connection: connection.execute(delete_event))


def _lock_tables(connection: Connection) -> None:
    """Block writers but not readers. SQLite has only one writer."""
    if connection.dialect.name == "postgresql":
        # The audit log and then events last, as writers do.
        tables = sorted(backup_tables(), key=lambda table: (table is events, table is audit))
        names = ", ".join(table.name for table in tables)
        connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


def _empty_tables(connection: Connection, plan: RestorePlan) -> None:
    """Delete all rows. For an older backup, create the tables of its schema version."""
    if plan.header.version == LATEST_VERSION:
        with allow_audit_deletion(connection):
            for table in reversed(backup_tables()):
                connection.execute(table.delete())
    else:
        METADATA.drop_all(connection)
        migrate(connection, plan.at, plan.header.version)


def _insert_all_rows(
    connection: Connection,
    plan: RestorePlan,
    entries: Iterable[BackupEntry],
    handle_chunk: HandleChunk | None,
) -> None:
    tables = METADATA
    if plan.header.version != LATEST_VERSION:
        tables = MetaData()
        tables.reflect(connection)  # the tables of the backup's schema version
    checker = _TableChecker(tables)
    batch, keep_alive = _InsertBatch(connection), KeepAlive(connection)
    for entry in entries:
        if isinstance(entry, FileChunk):
            keep_alive.send()
            if handle_chunk is not None:
                handle_chunk(connection, entry)
            continue
        row = checker.check(entry)
        table = checker.table
        if row is not None and table is not None and table.name not in plan.skipped_tables:
            batch.add(table, row)
    batch.flush()
    checker.finish()


class _InsertBatch:
    """Rows of one table, inserted together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table: Table | None = None
        self._rows: list[dict[str, object]] = []
        self._size = 0

    def add(self, table: Table, row: dict[str, object]) -> None:
        """Add a row. It is inserted when the batch is full, or by `flush`."""
        is_full = len(self._rows) >= _ROWS_PER_QUERY or self._size >= _MAX_BATCH_BYTES
        if table is not self._table or is_full:
            self.flush()
        self._table = table
        self._rows.append(row)
        self._size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))

    def flush(self) -> None:
        """Insert the pending rows."""
        if self._table is not None and self._rows:
            self._connection.execute(insert(self._table), self._rows)
        self._rows, self._size = [], 0


class _TableChecker:
    """Checks that tables and rows match a schema."""

    def __init__(self, tables: MetaData) -> None:
        self._tables = tables
        self._missing = {*tables.tables} - LEFT_OUT_TABLES.keys()
        self.table: Table | None = None
        self._columns: list[str] = []

    def check(self, entry: BackupEntry) -> dict[str, object] | None:
        """Check an entry; return a row by column key, and `None` for other entries.

        Raises: BackupRejected.
        """
        if isinstance(entry, TableStart):
            self._start_table(entry)
        elif isinstance(entry, list):
            if self.table is None or len(entry) != len(self._columns):
                raise BackupRejected("a row has too many or too few values")
            row = dict(zip(self._columns, entry, strict=True))
            try:
                validate_row(self.table, row)
            except UnsafePath:
                raise BackupRejected("it contains an invalid value") from None
            return {column.key: row[column.name] for column in self.table.columns}
        return None

    def finish(self) -> None:
        """Check that no table is missing. Raises: BackupRejected."""
        if self._missing:
            raise BackupRejected("it does not contain all tables")

    def _start_table(self, start: TableStart) -> None:
        if start.name not in self._missing:
            raise BackupRejected("it contains an unknown or duplicate table")
        self._missing.discard(start.name)
        self.table = self._tables.tables[start.name]
        self._columns = start.columns
        if sorted(start.columns) != sorted(column.name for column in self.table.columns):
            raise BackupRejected("a table has unknown or missing columns")


def _publish_reset(connection: Connection, last_seq: int, plan: RestorePlan) -> int:
    """Publish a reset event with a sequence number that no subscriber has seen yet."""
    # Pages contain the number of the last event, and must be the same as before the backup. In a
    # new database, where no client waits for it, the event is deleted after the restore.
    data: dict[str, str | int | None] = {} if last_seq else {"database": "new"}
    next_seq = max(read_event_range(connection)[1], last_seq) + 1
    _set_next_number(connection, events.c.seq, next_seq)
    return add_events(connection, Event(DATABASE_RESTORED, plan.id, "", 0, data, plan.at))


def _set_next_number(connection: Connection, column: Column[int], number: int) -> None:
    """Set the number of the next row of a table."""
    values: dict[str, object] = {"table": column.table.name, "column": column.name, "next": number}
    if connection.dialect.name == "postgresql":
        # With "false", the next number is :next itself.
        statement = "SELECT setval(pg_get_serial_sequence(:table, :column), :next, false)"
        connection.execute(text(statement), values)
    else:
        # SQLite stores the last number that was used.
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), values)
        statement = "INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :next - 1)"
        connection.execute(text(statement), values)
