"""The thread that seals the audit log."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.storage.audit.audit_chain import PRUNE_ACTION, read_head, verify_chain
from skillhall._internal.storage.audit.audit_query import AuditLog
from skillhall._internal.storage.audit.audit_sealer import AuditSealer, parse_retention
from skillhall._internal.storage.sql.audit_rows import add_audit_row, allow_audit_deletion
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall.errors import ConfigInvalid
from tests.support.backups import dump_database, load_database
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)) as opened:
        yield opened


def add_row(database: Database, at: str = TIMESTAMP) -> None:
    database.write(lambda c: add_audit_row(c, SYSTEM_ACTOR, "skill.edit", "pdf", at=at))


def test_rows_are_sealed_after_a_change_and_at_the_end(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "skillhall.server")
    with closing(AuditSealer(database, 36_500)):
        add_row(database)
        wait_until(lambda: database.read(read_head).row == 1)
        wait_until(lambda: database.read(read_head).hash in caplog.text)
    with closing(AuditSealer(database, 36_500)):
        add_row(database)
    assert database.read(verify_chain).pending == 0


def test_sealing_goes_on_after_a_restore_of_an_older_log(database: Database) -> None:
    add_row(database)
    data = dump_database(database)
    with closing(AuditSealer(database, 36_500)):
        for _ in range(3):
            add_row(database)
        wait_until(lambda: database.read(read_head).row == 4)
        load_database(database, data)
        add_row(database)
        wait_until(lambda: database.read(read_head).row == 2)
    assert database.read(verify_chain).verified == 2


def test_old_rows_are_pruned_and_a_broken_chain_is_known(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    add_row(database, "2020-01-01T00:00:00Z")
    with closing(AuditSealer(database)) as sealer:
        wait_until(lambda: database.read(read_head).row == 1)
        sealer.prune()
        assert [row["action"] for row in AuditLog(database).oldest()] == [PRUNE_ACTION]
        sealer.verify()
        assert sealer.problem == ""

        def tamper(connection: Connection) -> None:
            with allow_audit_deletion(connection):
                connection.execute(text("UPDATE audit SET actor = 'x'"))

        wait_until(lambda: database.read(read_head).row == 2)
        database.write(tamper)
        sealer.verify()
        assert sealer.problem.startswith("row 2: ")
    assert "row 2" in caplog.text


@pytest.mark.parametrize("value", ["", "0", "-1", "x", "40000", "²"])
def test_invalid_retention_is_rejected(value: str) -> None:
    with pytest.raises(ConfigInvalid, match="SKILLHALL_AUDIT_RETENTION"):
        parse_retention(value)


def test_retention_is_a_number_of_days() -> None:
    assert parse_retention("400") == 400
