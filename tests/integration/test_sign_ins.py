"""Sign-ins of browsers while the database is down or hangs."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.sign_ins import SignIns
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlSignInTable
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until
from tests.support.switchable_database import SwitchableDatabase

LIFETIME = 60.0  # seconds


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(SwitchableDatabase(build_sqlite_url(str(tmp_path / "a.db")), TIMESTAMP)) as opened:
        yield opened


@pytest.fixture
def sign_ins(database: SwitchableDatabase) -> Iterator[SignIns]:
    recorder = UseRecorder()
    with closing(recorder), closing(SignIns(SqlSignInTable(database), recorder)) as opened:
        yield opened


def test_sign_in_is_stored_before_it_is_returned(
    sign_ins: SignIns, database: SwitchableDatabase
) -> None:
    created = sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    assert SqlSignInTable(database).find(created.stored.digest) == created.stored
    assert sign_ins.find(created.cookie.encode()) == created.stored


def test_sign_in_during_an_outage_is_accepted_and_stored_later(
    sign_ins: SignIns, database: SwitchableDatabase
) -> None:
    database.is_down = True
    first, second = (sign_ins.create("token", "", "", LIFETIME, actor=ACTOR) for _ in range(2))
    for created in (first, second):
        assert sign_ins.find(created.cookie.encode()) == created.stored
        assert sign_ins.find_by_id(created.stored.id) == created.stored
    database.is_down = False
    wait_until(lambda: len(sign_ins.list("token")) == 2)
    assert sign_ins.find(first.cookie.encode()) == first.stored


def test_sign_in_that_was_stored_although_the_connection_broke_is_not_stored_twice(
    sign_ins: SignIns, database: SwitchableDatabase
) -> None:
    database.is_down = True
    first = sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    database.is_down = False
    SqlSignInTable(database).add(first.stored, actor=ACTOR)
    second = sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    assert wait_until(lambda: len(sign_ins.list("token")) == 2)
    assert sign_ins.find(second.cookie.encode()) == second.stored


def test_sign_in_does_not_wait_for_a_locked_database(sign_ins: SignIns, tmp_path: Path) -> None:
    sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        created = [sign_ins.create("token", "", "", LIFETIME, actor=ACTOR) for _ in range(3)]
        assert all(sign_ins.find(one.cookie.encode()) for one in created)
        other.execute("ROLLBACK")
    wait_until(lambda: len(sign_ins.list("token")) == 4)


def test_sign_in_that_ended_during_an_outage_is_not_stored(
    sign_ins: SignIns, database: SwitchableDatabase
) -> None:
    database.is_down = True
    created = sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    with pytest.raises(DatabaseUnavailable):
        sign_ins.end("token", created.stored.id, actor=ACTOR)
    assert sign_ins.find(created.cookie.encode()) is None
    database.is_down = False
    later = sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
    assert wait_until(lambda: sign_ins.list("token")) == [later.stored]


def test_number_of_waiting_sign_ins_is_limited(
    sign_ins: SignIns, database: SwitchableDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillhall._internal.storage.sign_ins._MAX_PENDING", 2)
    database.is_down = True
    threads = [
        threading.Thread(target=sign_ins.create, args=("token", "", "", LIFETIME, ACTOR))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(DatabaseUnavailable, match="too many sign-ins"):
        sign_ins.create("token", "", "", LIFETIME, actor=ACTOR)
