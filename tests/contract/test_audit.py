"""Contract of the audit log on both databases."""

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor, Via
from skillhall._internal.storage.audit.audit_chain import (
    PRUNE_ACTION,
    ChainHead,
    ChainReport,
    prune_rows,
    seal_rows,
    verify_chain,
)
from skillhall._internal.storage.audit.audit_query import AuditFilter, AuditLog
from skillhall._internal.storage.audit.audit_sealer import AuditSealer
from skillhall._internal.storage.sql.audit_rows import (
    MAX_TEXT,
    add_audit_row,
    allow_audit_deletion,
)
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.tables import audit, audit_seals
from tests.support.backups import dump_database, load_database
from tests.support.databases import TIMESTAMP

ACTOR = Actor("dev1", "ci", Via.REST, "::1", "r1")


def add_rows(database: Database, *subjects: str, at: str = TIMESTAMP) -> None:
    """Add a row for each subject, each in a transaction of its own."""
    for subject in subjects:

        def work(connection: Connection, subject: str = subject) -> None:
            add_audit_row(connection, ACTOR, "skill.edit", subject, at=at)

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


def seal(database: Database) -> ChainHead:
    head = database.write(seal_rows)
    assert head is not None
    return head


def change_by_force(database: Database, *statements: str) -> None:
    """Change the log as the owner of the database could."""

    def work(connection: Connection) -> None:
        tables = [audit.name, audit_seals.name]
        if database.is_postgres:
            for table in tables:
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
        with allow_audit_deletion(connection):
            for statement in statements:
                connection.execute(text(statement))
        if database.is_postgres:
            for table in tables:
                connection.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER USER"))

    database.write(work)


def test_sealed_log_is_verified(database: Database) -> None:
    add_rows(database, "a", "b")
    head = seal(database)
    add_rows(database, "c")
    report = database.read(verify_chain)
    assert report == ChainReport(head, verified=2, pending=1)
    assert seal(database).position == 3
    assert seal(database) == seal(database)


def test_seal_is_the_hash_of_the_seal_before_and_the_exported_row(database: Database) -> None:
    add_rows(database, "a", "ü")
    seal(database)
    previous = ""
    for row in AuditLog(database).oldest():
        values = {name: value for name, value in row.items() if name not in ("position", "hash")}
        data = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        previous = hashlib.sha256(f"{previous}\n{data}".encode()).hexdigest()
        assert row["hash"] == previous


def copy_row(source: int, target: int) -> str:
    """Return a statement that inserts a row of another actor."""
    columns = "token, via, address, request_id, action, subject, digest_before, digest_after"
    rest = f"{columns}, outcome, detail FROM audit WHERE id = {source}"
    return f"INSERT INTO audit SELECT {target}, at, 'x', {rest}"


TAMPERED = {
    "edited": (["UPDATE audit SET actor = 'x' WHERE id = 3"], 3),
    "deleted": (["DELETE FROM audit WHERE id = 3"], 3),
    "deleted with its seal": (
        ["DELETE FROM audit WHERE id = 3", "DELETE FROM audit_seals WHERE audit_id = 3"],
        4,
    ),
    "first rows deleted": (
        ["DELETE FROM audit WHERE id <= 2", "DELETE FROM audit_seals WHERE audit_id < 2"],
        2,
    ),
    "first rows and seals deleted": (
        ["DELETE FROM audit WHERE id <= 2", "DELETE FROM audit_seals WHERE audit_id <= 2"],
        3,
    ),
    "inserted": (
        [
            "DELETE FROM audit WHERE id = 3",
            copy_row(2, 3),
        ],
        3,
    ),
    "inserted without a seal": (
        [
            "UPDATE audit_seals SET audit_id = 99 WHERE position = 5",
            "UPDATE audit SET id = 99 WHERE id = 5",
            copy_row(2, 5),
        ],
        99,
    ),
    "reordered": (
        [
            "UPDATE audit_seals SET audit_id = 99 WHERE position = 2",
            "UPDATE audit_seals SET audit_id = 2 WHERE position = 3",
            "UPDATE audit_seals SET audit_id = 3 WHERE position = 2",
        ],
        3,
    ),
    "resealed": (["UPDATE audit_seals SET hash = 'x' WHERE position = 4"], 4),
    "details that are no JSON": (["UPDATE audit SET detail = '{' WHERE id = 3"], 3),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_broken_row_is_named(database: Database, name: str) -> None:
    statements, row = TAMPERED[name]
    add_rows(database, *"abcde")
    seal(database)
    change_by_force(database, *statements)
    report = database.read(verify_chain)
    assert (report.broken_row, bool(report.problem)) == (row, True)


def test_row_in_a_gap_of_the_numbers_is_named(database: Database) -> None:
    add_rows(database, "a", "b")
    change_by_force(database, "UPDATE audit SET id = 9 WHERE id = 2")
    seal(database)
    database.write(lambda connection: connection.execute(text(copy_row(1, 5))))
    assert seal(database).row == 9
    report = database.read(verify_chain)
    assert (report.broken_row, report.problem) == (5, "this row was inserted later")


def test_rewritten_chain_is_found_with_a_hash_from_the_log(database: Database) -> None:
    add_rows(database, "a", "b", "c")
    head = seal(database)
    add_rows(database, "d")
    seal(database)
    assert not database.read(lambda connection: verify_chain(connection, head.hash)).problem
    change_by_force(database, "DELETE FROM audit_seals", "UPDATE audit SET actor = 'x'")
    seal(database)
    assert not database.read(verify_chain).problem
    report = database.read(lambda connection: verify_chain(connection, head.hash))
    assert "not in the chain" in report.problem


def test_pruning_deletes_whole_sealed_days_and_is_recorded(database: Database) -> None:
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        add_rows(database, "early", at=f"{day}T01:00:00.000Z")
        add_rows(database, "late", at=f"{day}T23:00:00.000Z")
    head = seal(database)
    assert prune(database, "2026-01-01") == 0
    assert prune(database, "2026-01-03") == 4
    seal(database)
    rows = AuditLog(database).oldest()
    assert [row["action"] for row in rows] == ["skill.edit", "skill.edit", PRUNE_ACTION]
    assert rows[-1]["detail"]["position"] == 4
    assert database.read(verify_chain).verified == 3
    assert not database.read(lambda connection: verify_chain(connection, head.hash)).problem
    assert prune(database, "2027-01-01") == 3
    assert database.read(verify_chain).problem == ""
    add_rows(database, "next")
    assert seal(database).position == 9
    assert database.read(verify_chain) == ChainReport(seal(database), verified=2, pending=0)


def test_unsealed_rows_are_not_pruned(database: Database) -> None:
    add_rows(database, "a", "b")
    assert prune(database, "2030-01-01") == 0
    seal(database)
    add_rows(database, "c")
    assert prune(database, "2030-01-01") == 2
    assert [row.subject for row in read_rows(database)] == ["c", "2030-01-01"]


def test_cut_log_is_not_taken_for_a_pruned_one(database: Database) -> None:
    add_rows(database, *"abcd")
    seal(database)
    assert prune(database, "2030-01-01") == 4
    add_rows(database, *"ef")
    seal(database)
    change_by_force(
        database, "DELETE FROM audit WHERE id <= 5", "DELETE FROM audit_seals WHERE position < 5"
    )
    assert database.read(verify_chain).problem == "the rows up to this one were deleted"


def test_restored_log_is_verified(database: Database) -> None:
    add_rows(database, "a", "b")
    seal(database)
    add_rows(database, "c")
    load_database(database, dump_database(database))
    assert database.read(verify_chain).pending == 1
    seal(database)
    assert database.read(verify_chain).verified == 3


def test_frozen_server_delays_seals_and_no_changes(
    open_database_of: Callable[[str], Database],
) -> None:
    database = open_database_of("postgres")
    add_rows(database, "a")

    def freeze(connection: Connection) -> None:
        assert seal_rows(connection) is not None
        add_rows(database, "b")
        assert database.write(seal_rows) is None

    database.write(freeze)
    assert seal(database).position == 2


def prune(database: Database, before: str) -> int:
    return database.write(lambda connection: prune_rows(connection, before, TIMESTAMP))


def test_rows_are_filtered_and_paged(database: Database) -> None:
    def add(action: str, subject: str, actor: Actor, outcome: str = "done") -> None:
        database.write(
            lambda connection: add_audit_row(
                connection, actor, action, subject, at=TIMESTAMP, outcome=outcome
            )
        )

    add("skill.edit", "pdf", ACTOR)
    add("skill.delete", "pdf", ACTOR._replace(token=""))
    add("skills.other", "pdf", ACTOR)
    add("token.create", "ci", SYSTEM_ACTOR, "refused")
    log = AuditLog(database)

    def ids(**values: str) -> list[int]:
        return [row["id"] for row in log.newest(AuditFilter(**values))]

    assert ids() == [4, 3, 2, 1]
    assert ids(action="skill") == [2, 1]
    assert ids(action="skill.edit") == [1]
    assert ids(actor="dev1") == [3, 2, 1]
    assert ids(actor="dev1/ci") == [3, 1]
    assert ids(subject="ci") == ids(outcome="refused") == ids(via="system") == [4]
    assert ids(since="2026-01-02", until="2026-01-03") == [4, 3, 2, 1]
    assert ids(since="2026-01-03") == ids(until="2026-01-02") == []
    assert [row["id"] for row in log.newest(before=3, limit=1)] == [2]
    assert [row["id"] for row in log.oldest(after=2, limit=1)] == [3]
    assert [len(page) for page in log.pages(AuditFilter(subject="pdf"))] == [3]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_servers_and_four_writers_leave_an_unbroken_chain(
    open_database_of: Callable[[str], Database],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: str,
) -> None:
    database = open_database_of(kind)
    url = request.getfixturevalue("postgres") if kind == "postgres" else f"{tmp_path}/test.db"
    other = Database(url if kind == "postgres" else build_sqlite_url(url), TIMESTAMP)

    def write(number: int) -> None:
        for step in range(25):
            with suppress(KeyError):
                (database, other)[number % 2].write(partial(change, number, step))

    def change(number: int, step: int, connection: Connection) -> None:
        add_audit_row(connection, ACTOR, "skill.edit", f"{number}-{step}", at=TIMESTAMP)
        if step % 5 == 0:
            raise KeyError

    with (
        closing(other),
        closing(AuditSealer(database, 36_500)),
        closing(AuditSealer(other, 36_500)),
        ThreadPoolExecutor(4) as pool,
    ):
        [*pool.map(write, range(4))]
    seal(database)
    report = database.read(verify_chain)
    assert (report.problem, report.verified, report.pending) == ("", 80, 0)
