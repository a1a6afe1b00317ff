"""Expiry of cached credentials, and the times of their use."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from skillhall._internal.storage.access_tokens import AccessTokens, TokenCache
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.records import format_time, parse_time
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlTokenTable
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until
from tests.support.switchable_database import SwitchableDatabase


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    url = build_sqlite_url(str(tmp_path / "test.db"))
    with closing(SwitchableDatabase(url, TIMESTAMP)) as database:
        yield database


@pytest.fixture
def table(database: SwitchableDatabase) -> SqlTokenTable:
    return SqlTokenTable(database)


def test_use_is_stored_at_once_and_then_once_a_minute(table: SqlTokenTable) -> None:
    identity, clock = AccessTokens(table).create("laptop", actor=ACTOR).stored.id, Clock()

    def stored() -> str | None:
        return table.list()[0].used

    with closing(UseRecorder(clock)) as recorder:
        recorder.record(table, identity)
        first = format_time(clock.now)
        wait_until(lambda: stored() == first)
        clock.now += 59
        recorder.record(table, identity)
        clock.now += 1
        recorder.record(table, identity)
        wait_until(lambda: stored() == format_time(clock.now))


def test_servers_together_store_a_use_once_a_minute(table: SqlTokenTable) -> None:
    identity = AccessTokens(table).create("laptop", actor=ACTOR).stored.id
    start = Clock.now
    for at in (start, start + 30, start + 59):
        table.record_uses({identity: at, "unknown": at})
    assert table.list()[0].used == format_time(start)
    table.record_uses({identity: start + 60})
    assert table.list()[0].used == format_time(start + 60)


def test_use_during_an_outage_is_forgotten(
    table: SqlTokenTable, database: SwitchableDatabase
) -> None:
    identity, clock = AccessTokens(table).create("laptop", actor=ACTOR).stored.id, Clock()
    recorder = UseRecorder(clock)
    database.is_down = True
    recorder.record(table, identity)
    recorder.close()
    database.is_down = False
    assert table.list()[0].used is None


def test_use_does_not_count_as_a_change(table: SqlTokenTable) -> None:
    identity, clock = AccessTokens(table).create("laptop", actor=ACTOR).stored.id, Clock()
    recorder = UseRecorder(clock)
    with closing(recorder), closing(TokenCache(table, recorder, clock)) as cache:
        cache.try_refresh()
        changed = threading.Event()
        cache.subscribe(changed.set)
        table.record_uses({identity: clock.now})
        cache.try_refresh()
        found = cache.find_by_id(identity)
        assert found is not None
        assert found.used == format_time(clock.now)
        assert not changed.is_set()


def test_subscribers_are_notified_when_a_credential_expires(
    table: SqlTokenTable, database: SwitchableDatabase
) -> None:
    clock = Clock()
    expires = timedelta(hours=1)
    identity = AccessTokens(table).create("laptop", lifetime=expires, actor=ACTOR).stored.id
    stored = table.list()[0]
    assert stored.expires
    recorder = UseRecorder(clock)
    expiry = parse_time(stored.expires) / 1_000_000_000
    clock.now = expiry - 60
    with closing(recorder), closing(TokenCache(table, recorder, clock)) as cache:
        cache.try_refresh()
        changed = threading.Event()
        cache.subscribe(changed.set)
        clock.now = expiry + 60
        database.is_down = True  # a server without its database knows the time, too
        cache.try_refresh()
        assert changed.is_set()
        assert cache.find_by_id(identity) == stored


def test_known_credentials_are_accepted_for_15_minutes_without_the_database(
    table: SqlTokenTable, database: SwitchableDatabase
) -> None:
    clock, text = Clock(), AccessTokens(table).create("laptop", actor=ACTOR).text
    recorder = UseRecorder(clock)
    with closing(recorder), closing(TokenCache(table, recorder, clock)) as cache:
        cache.try_refresh()
        changed = threading.Event()
        cache.subscribe(changed.set)
        database.is_down = True
        clock.now += 15 * 60
        cache.try_refresh()
        assert cache.find(text.encode()) is not None
        assert not changed.is_set()
        clock.now += 1
        with pytest.raises(DatabaseUnavailable):
            cache.find(text.encode())
        with pytest.raises(DatabaseUnavailable):
            cache.find_by_id("1")
        cache.try_refresh()
        assert changed.is_set()  # ends open requests
        database.is_down = False
        cache.try_refresh()
        assert cache.find(text.encode()) is not None
