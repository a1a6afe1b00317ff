"""Backup of a database as compressed JSON lines, for SQLite and PostgreSQL.

A backup of either can be restored to either.

The first line is a header; the last has the number of rows and the SHA-256 of all lines before it.
Between them, each table is a line with its name and columns, followed by a line per row.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import io
import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import MetaData, func, insert, select, text
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, ProgrammingError

from skillhall._internal.storage.records import DATABASE_RESTORED
from skillhall._internal.storage.sql.backup_validation import validate_row
from skillhall._internal.storage.sql.engine import lift_limits
from skillhall._internal.storage.sql.event_rows import publish_event, read_event_range
from skillhall._internal.storage.sql.migrations import (
    LATEST_VERSION,
    current_version,
    lock_schema,
    migrate,
)
from skillhall._internal.storage.sql.tables import METADATA, events, migrations
from skillhall.errors import BackupRejected, Conflict, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Table

    from skillhall._internal.storage.sql.engine import Database

FORMAT = "skillhall.backup/1"
_BASE64_KEY = "base64"  # marks a value as bytes
_MAX_LINE_BYTES = 64 * 1024 * 1024  # a file of a skill has at most 10 MiB


class BackupReport(NamedTuple):
    """Number of rows and schema version of a backup."""

    rows: int
    version: int


def create_backup(database: Database, at: str) -> tuple[bytes, BackupReport]:
    """Return a consistent backup and a report about it. Raises: DatabaseUnavailable."""

    def work(connection: Connection) -> tuple[bytes, BackupReport]:
        lift_limits(connection)
        version, rows = current_version(connection), 0
        packed, digest = io.BytesIO(), hashlib.sha256()
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as out:
            for value in _read_values(connection, version, at):
                rows += isinstance(value, list)
                line = _serialize_line(value)
                digest.update(line)
                out.write(line)
            out.write(_serialize_line({"rows": rows, "sha256": digest.hexdigest()}))
        return packed.getvalue(), BackupReport(rows, version)

    return database.read(work)


def restore_backup(database: Database, data: bytes, at: str, *, overwrite: bool) -> BackupReport:
    """Replace the content of the database with a backup, all or nothing.

    Raises: BackupRejected, Conflict if the database is not empty and `overwrite` is not set,
    DatabaseUnavailable, DatabaseFull.
    """
    report = _validate_backup(data)

    def work(connection: Connection) -> BackupReport:
        lift_limits(connection)
        lock_schema(connection)
        if not overwrite and _has_data(connection):
            raise Conflict("a database with data", "use --overwrite to replace its data")
        last_seq = read_event_range(connection)[1]
        METADATA.drop_all(connection)
        migrate(connection, at, report.version)
        try:
            _insert_all_rows(connection, map(json.loads, _read_lines(data)))
        except (IntegrityError, DataError, InterfaceError, ProgrammingError):
            raise BackupRejected("it contains invalid or inconsistent rows") from None
        except (UnicodeError, OverflowError, UnsafePath):
            raise BackupRejected("it contains an invalid value") from None
        migrate(connection, at)
        _publish_reset(connection, last_seq, at)
        return report

    return database.write(work)


def _read_values(connection: Connection, version: int, at: str) -> Iterator[object]:
    """Yield the header, then a dictionary for each table and a list for each row."""
    yield {"format": FORMAT, "version": version, "at": at}
    for table in METADATA.sorted_tables:
        if table is migrations:
            continue
        yield {"table": table.name, "columns": [column.name for column in table.columns]}
        for row in connection.execute(select(table).order_by(*table.primary_key.columns)):
            yield [_encode_value(value) for value in row]


def _validate_backup(data: bytes) -> BackupReport:
    """Check a backup completely before anything is changed. Raises: BackupRejected."""
    digest, rows, version = hashlib.sha256(), 0, 0
    end: object = None
    try:
        for number, line in enumerate(_read_lines(data)):
            if end is not None:
                raise BackupRejected("it has data after its end")
            value = json.loads(line)
            if isinstance(value, dict) and "sha256" in value:
                end = value
                continue
            digest.update(line)
            rows += isinstance(value, list)
            if number == 0:
                version = _parse_version(value)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error):
        raise BackupRejected("it is damaged or not a backup") from None
    if end != {"rows": rows, "sha256": digest.hexdigest()} or not version:
        raise BackupRejected("its beginning or end is missing, or it was changed")
    return BackupReport(rows, version)


def _parse_version(head: object) -> int:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise BackupRejected("it is not a Skillhall backup")
    version = head.get("version")
    if not isinstance(version, int) or version < 1:
        raise BackupRejected("it does not state its version")
    if version > LATEST_VERSION:
        message = (
            f"its version is {version}; this version of Skillhall supports up to {LATEST_VERSION}"
        )
        raise BackupRejected(message)
    return version


def _read_lines(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as lines:
        while line := lines.readline(_MAX_LINE_BYTES):
            yield line


def _insert_all_rows(connection: Connection, lines: Iterator[Any]) -> None:
    tables = MetaData()
    tables.reflect(connection)  # the tables of the backup's schema version
    missing = {*tables.tables} - {migrations.name}
    table: Table | None = None
    columns: list[str] = []
    rows: list[dict[str, object]] = []
    next(lines)  # the header
    for value in lines:
        if isinstance(value, list) and table is not None and len(value) == len(columns):
            row = dict(zip(columns, map(_decode_value, value), strict=True))
            validate_row(table, row)
            rows.append(row)
            continue
        if table is not None and rows:
            connection.execute(insert(table), rows)
        if isinstance(value, dict) and "sha256" in value:
            break
        table, columns = _find_table(tables, value)
        missing.discard(table.name)
        rows = []
    if missing:
        raise BackupRejected("it does not contain all tables")


def _find_table(tables: MetaData, value: Any) -> tuple[Table, list[str]]:  # noqa: ANN401 - a line
    if not isinstance(value, dict):
        raise BackupRejected("a row has too many or too few values")
    name, columns = value.get("table"), value.get("columns")
    table = tables.tables.get(name) if isinstance(name, str) else None
    if table is None or table.name == migrations.name or not isinstance(columns, list):
        raise BackupRejected("it contains an unknown table")
    if sorted(map(str, columns)) != sorted(table.c.keys()):
        raise BackupRejected("a table has unknown or missing columns")
    return table, columns


def _publish_reset(connection: Connection, last_seq: int, at: str) -> None:
    """Publish a reset event with a sequence number that no subscriber has seen yet."""
    next_seq = max(read_event_range(connection)[1], last_seq) + 1
    if connection.dialect.name == "postgresql":
        # With "false", the next number is :seq itself.
        statement = "SELECT setval(pg_get_serial_sequence('events', 'seq'), :seq, false)"
        connection.execute(text(statement), {"seq": next_seq})
    else:
        # SQLite stores the last number that was used.
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = 'events'"))
        statement = "INSERT INTO sqlite_sequence (name, seq) VALUES ('events', :seq)"
        connection.execute(text(statement), {"seq": next_seq - 1})
    publish_event(connection, DATABASE_RESTORED, at)


def _has_data(connection: Connection) -> bool:
    tables = (table for table in METADATA.sorted_tables if table not in (migrations, events))
    return any(
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
    )


def _encode_value(value: object) -> object:
    if isinstance(value, bytes | memoryview):
        return {_BASE64_KEY: base64.b64encode(value).decode("ascii")}
    return value


def _decode_value(value: object) -> object:
    if not isinstance(value, dict):
        return value
    try:
        return base64.b64decode(value[_BASE64_KEY], validate=True)
    except (KeyError, TypeError, binascii.Error):
        raise BackupRejected("it contains a value that cannot be read") from None


def _serialize_line(value: object) -> bytes:
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return f"{line}\n".encode()
