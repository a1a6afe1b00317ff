"""Backups of tables alone, and forged backups."""

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

from skillhall._internal.storage.backup_format import (
    FORMAT_2,
    BackupHeader,
    BackupReader,
    BackupTotals,
    BackupWriter,
)
from skillhall._internal.storage.sql.backup import (
    RestorePlan,
    check_rows,
    dump_tables,
    replace_rows,
)
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.migrations import LATEST_VERSION
from tests.support.databases import TIMESTAMP

Lines = list[Any]


def dump_database(database: Database) -> bytes:
    """Return a backup of the tables."""
    stream = io.BytesIO()
    kind = "postgresql" if database.is_postgres else "sqlite"
    writer = BackupWriter(stream, BackupHeader(FORMAT_2, LATEST_VERSION, TIMESTAMP, kind))
    database.read(lambda connection: dump_tables(connection, writer))
    writer.finish([])
    return stream.getvalue()


def load_database(database: Database, data: bytes) -> BackupTotals:
    """Check a backup, then replace the tables."""
    reader = BackupReader(io.BytesIO(data))
    *_, totals = check_rows(reader.header, reader.entries())
    plan = RestorePlan(reader.header, "0123456789abcdef", TIMESTAMP)
    database.write(lambda connection: replace_rows(connection, plan, reader.entries()))
    assert isinstance(totals, BackupTotals)
    return totals


def forge(data: bytes, change: Callable[[Lines], object]) -> bytes:
    """Change the lines of a backup, and compute matching digests."""
    lines: Lines = [json.loads(line) for line in gzip.decompress(data).splitlines()][:-1]
    lines = [line for line in lines if not (is_table(line) and "columns" not in line)]
    change(lines)
    return gzip.compress(b"".join(seal(lines)))


def seal(lines: Lines) -> list[bytes]:
    """Return the lines of a backup with the ends of tables and of the file."""
    sealed: list[bytes] = []
    rows: list[bytes] = []
    table: object = None

    def end_table() -> None:
        nonlocal table
        if table is not None:
            digest = hashlib.sha256(b"".join(rows)).hexdigest()
            sealed.append(encode({"table": table, "rows": len(rows), "sha256": digest}))
        rows.clear()
        table = None

    for line in lines:
        if is_table(line):
            end_table()
            table = line["table"]
        if isinstance(line, list):
            rows.append(encode(line))
        sealed.append(encode(line))
    end_table()
    files = [line for line in lines if isinstance(line, dict) and "file" in line]
    end = {
        "rows": sum(isinstance(line, list) for line in lines),
        "files": sum("offset" not in line for line in files),
        "bytes": sum(
            len(line["data"]["text"].encode()) for line in files if isinstance(line["data"], dict)
        ),
        "skipped": [],
    }
    digest = hashlib.sha256(b"".join(sealed)).hexdigest()
    return [*sealed, encode({"end": end, "sha256": digest})]


def is_table(line: object) -> bool:
    return isinstance(line, dict) and "table" in line


def encode(line: object) -> bytes:
    return json.dumps(line).encode() + b"\n"
