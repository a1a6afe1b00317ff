"""Database that is unavailable when a server starts."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.events.event_feed import EventFeed
from skillhall._internal.storage.sql.events.event_rows import SqlOutbox
from skillhall._internal.storage.sql.events.event_signal import open_event_signal
from skillhall._internal.storage.sql.tables import migrations
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall.errors import DatabaseNewer, DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Path of the database's folder, blocked by a file."""
    path = tmp_path / "data"
    path.write_bytes(b"")
    return path


def test_database_without_allow_outage_fails_at_once(folder: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP)


def test_database_with_allow_outage_opens_once_available(folder: Path) -> None:
    with closing(
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP, allow_outage=True)
    ) as database:
        assert "cannot be used" in database.find_problem()
        with pytest.raises(DatabaseUnavailable):
            SqlOutbox(database).publish("kind", {}, TIMESTAMP)
        folder.unlink()
        assert database.find_problem() == ""
        SqlOutbox(database).publish("kind", {}, TIMESTAMP)


def test_newer_database_is_rejected_despite_allow_outage(tmp_path: Path) -> None:
    url = build_sqlite_url(str(tmp_path / "test.db"))
    with closing(Database(url, TIMESTAMP)) as database:
        row = {"version": 10_000, "applied_at": TIMESTAMP}
        database.write(lambda connection: connection.execute(migrations.insert(), row))
    with pytest.raises(DatabaseNewer):
        Database(url, TIMESTAMP, allow_outage=True)


def test_event_feed_sends_an_empty_batch_after_an_outage(folder: Path) -> None:
    with closing(
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP, allow_outage=True)
    ) as database:
        received: list[Sequence[str]] = []

        def receive(events: Sequence[Event]) -> None:
            received.append([event.kind for event in events])

        with closing(
            EventFeed(SqlWorkspaceStore(database, actor=ACTOR), open_event_signal(database))
        ) as feed:
            feed.subscribe(receive)
            assert received == []
            folder.unlink()
            wait_until(lambda: received == [[]])
            SqlOutbox(database).publish("kind", {}, TIMESTAMP)
            wait_until(lambda: received == [[], ["kind"]])
