"""Contract of the audit log on both databases."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor, Via
from skillhall._internal.storage.sql.audit_rows import (
    MAX_TEXT,
    add_audit_row,
    allow_audit_deletion,
)
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.tables import audit, audit_seals
from tests.support.backups import dump_database, load_database
from tests.support.databases import TIMESTAMP

ACTOR = Actor("dev1", "ci", Via.REST, "::1", "r1")


def add_rows(database: Database, *subjects: str) -> None:
    """Add a row for each subject, each in a transaction of its own."""
    for subject in subjects:

        def work(connection: Connection, subject: str = subject) -> None:
            add_audit_row(connection, ACTOR, "skill.edit", subject, at=TIMESTAMP)

        database.write(work)


def read_rows(database: Database) -> list[Any]:
    query = select(audit).order_by(audit.c.id)
    return database.read(lambda connection: [*connection.execute(query)])


def test_row_tells_who_did_what_through_which_surface(database: Database) -> None:
    def work(connection: Connection) -> None:
        add_audit_row(
            connection,
            ACTOR,
            "skill.edit",
            "pdf",
            at=TIMESTAMP,
            digest_before="old",
            digest_after="new",
            detail={"b": 1, "a": "ü"},
        )

    database.write(work)
    [row] = read_rows(database)
    assert row.id == 1
    assert tuple(row)[1:-1] == (
        *(TIMESTAMP, "dev1", "ci", "rest", "::1", "r1"),
        *("skill.edit", "pdf", "old", "new", "done"),
    )
    assert json.loads(row.detail) == {"a": "ü", "b": 1}


def test_rows_of_a_rolled_back_transaction_do_not_exist(database: Database) -> None:
    def work(connection: Connection) -> None:
        add_audit_row(connection, SYSTEM_ACTOR, "skill.edit", "pdf", at=TIMESTAMP)
        raise KeyError

    with pytest.raises(KeyError):
        database.write(work)
    assert read_rows(database) == []


def test_row_that_is_added_first_and_committed_last_gets_the_last_number(
    open_database_of: Callable[[str], Database],
) -> None:
    database = open_database_of("postgres")  # SQLite has only one writer

    def work(connection: Connection) -> None:
        add_audit_row(connection, ACTOR, "skill.edit", "first", at=TIMESTAMP)
        add_rows(database, "second")

    database.write(work)
    assert [(row.id, row.subject) for row in read_rows(database)] == [(1, "second"), (2, "first")]


def test_rows_are_numbered_in_the_order_of_their_commits(database: Database) -> None:
    add_rows(database, "a", "b")

    def write_two(connection: Connection) -> None:
        for subject in ("c", "d"):
            add_audit_row(connection, ACTOR, "skill.edit", subject, at=TIMESTAMP)

    database.write(write_two)
    rows = read_rows(database)
    assert [row.subject for row in rows] == ["a", "b", "c", "d"]
    assert [row.id for row in rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'x'",
        "DELETE FROM audit",
        "UPDATE audit_seals SET hash = 'x'",
        "DELETE FROM audit_seals",
    ],
)
def test_database_refuses_to_change_rows(database: Database, statement: str) -> None:
    add_rows(database, "a")
    seal = {"position": 1, "audit_id": 1, "hash": "h"}
    database.write(lambda connection: connection.execute(audit_seals.insert(), seal))
    with pytest.raises(Exception, match="append-only"):
        database.write(lambda connection: connection.execute(text(statement)))
    assert [row.actor for row in read_rows(database)] == ["dev1"]


def test_postgres_refuses_to_truncate_the_log(
    open_database_of: Callable[[str], Database],
) -> None:
    database = open_database_of("postgres")
    with pytest.raises(Exception, match="append-only"):
        database.write(lambda connection: connection.execute(text("TRUNCATE audit")))


def test_rows_can_be_deleted_only_inside_the_block_that_allows_it(database: Database) -> None:
    add_rows(database, "a", "b")

    def work(connection: Connection) -> None:
        with allow_audit_deletion(connection):
            connection.execute(audit.delete().where(audit.c.id == 1))
        connection.execute(audit.delete())

    with pytest.raises(Exception, match="append-only"):
        database.write(work)
    assert [row.id for row in read_rows(database)] == [1, 2]


def test_texts_from_outside_are_shortened_and_stored(database: Database) -> None:
    actor = ACTOR._replace(address="x" * 9_999)
    details = {"name": "a\0\ud800" + "y" * 9_999, "none": None, "yes": True}

    def work(connection: Connection) -> None:
        add_audit_row(connection, actor, "skill.edit", "a\0\ud800b", at=TIMESTAMP, detail=details)

    database.write(work)
    [row] = read_rows(database)
    assert len(row.address) == MAX_TEXT
    assert row.subject == "a�?b"
    assert json.loads(row.detail) == {"name": "a�?" + "y" * 497, "none": None, "yes": True}


def test_restored_log_goes_on_with_the_next_number(database: Database) -> None:
    add_rows(database, "a", "b")
    data = dump_database(database)
    add_rows(database, "c")
    load_database(database, data)
    add_rows(database, "d")
    assert [(row.id, row.subject) for row in read_rows(database)] == [(1, "a"), (2, "b"), (3, "d")]
