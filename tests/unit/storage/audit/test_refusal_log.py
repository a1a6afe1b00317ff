"""Refused requests in the audit log."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.policy.access.actor import Actor, Via
from skillhall._internal.storage.audit.audit_query import AuditLog
from skillhall._internal.storage.audit.refusal_log import MAX_ROWS, RefusalLog
from skillhall._internal.storage.sql.engine import build_sqlite_url
from tests.support.databases import TIMESTAMP
from tests.support.switchable_database import SwitchableDatabase

ACTOR = Actor("dev1", "ci", Via.REST, "::1", "r1")
HOUR = 3600.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    url = build_sqlite_url(str(tmp_path / "test.db"))
    with closing(SwitchableDatabase(url, TIMESTAMP)) as opened:
        yield opened


def read_details(database: SwitchableDatabase) -> list[tuple[str, dict[str, object]]]:
    rows = AuditLog(database).oldest()
    assert all(row["outcome"] == "refused" for row in rows)
    return [(row["action"], row["detail"]) for row in rows]


def test_repeated_refusal_has_one_row_and_one_with_its_number(
    database: SwitchableDatabase,
) -> None:
    now = 1.0
    with closing(RefusalLog(database, lambda: now)) as refusals:
        for number in range(5):
            refusals.record(ACTOR._replace(request_id=f"r{number}"), "chat", path=f"/{number}")
        refusals.record(ACTOR, "read")
        now += HOUR
        refusals.record(ACTOR, "chat", path="/next")
    expected = [("chat", {"path": "/0"}), ("read", {}), ("chat", {"repeated": 4})]
    assert read_details(database) == [*expected, ("chat", {"path": "/next"})]


def test_many_different_refusals_are_counted(database: SwitchableDatabase) -> None:
    with closing(RefusalLog(database, lambda: 1.0)) as refusals:
        for number in range(MAX_ROWS + 7):
            refusals.record(ACTOR._replace(address=str(number)), "sign-in")
    rows = read_details(database)
    assert len(rows) == MAX_ROWS + 1
    assert rows[-1] == ("sign-in", {"others": 7})


def test_refusals_wait_for_the_database(database: SwitchableDatabase) -> None:
    with closing(RefusalLog(database, lambda: 1.0)) as refusals:
        database.is_down = True
        refusals.record(ACTOR, "chat")
        database.is_down = False
    assert read_details(database) == [("chat", {})]
