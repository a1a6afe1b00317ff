"""A database that is not there when a server starts."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_signal import open_event_signal
from skillhall._internal.storage.sql.tables import migrations
from skillhall._internal.storage.sql.token_rows import SqlOutbox
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceStore
from skillhall.errors import DatabaseNewer, DatabaseUnavailable
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the folder of the database should be, but a file is."""
    place = tmp_path / "data"
    place.write_bytes(b"")
    return place


def test_an_impatient_one_fails_at_once(folder: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP)


def test_a_patient_one_is_opened_as_soon_as_it_can_be(folder: Path) -> None:
    with closing(
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP, allow_outage=True)
    ) as database:
        assert "cannot be used" in database.find_problem()
        with pytest.raises(DatabaseUnavailable):
            SqlOutbox(database).publish("kind", {}, TIMESTAMP)
        folder.unlink()
        assert database.find_problem() == ""
        SqlOutbox(database).publish("kind", {}, TIMESTAMP)


def test_not_even_a_patient_one_touches_what_is_newer(tmp_path: Path) -> None:
    url = build_sqlite_url(str(tmp_path / "test.db"))
    with closing(Database(url, TIMESTAMP)) as database:
        row = {"version": 10_000, "applied_at": TIMESTAMP}
        database.write(lambda connection: connection.execute(migrations.insert(), row))
    with pytest.raises(DatabaseNewer):
        Database(url, TIMESTAMP, allow_outage=True)


def test_a_feed_says_when_it_begins_to_know_and_tells_everything_after_that(folder: Path) -> None:
    with closing(
        Database(build_sqlite_url(str(folder / "test.db")), TIMESTAMP, allow_outage=True)
    ) as database:
        heard: list[Sequence[str]] = []

        def listen(events: Sequence[Event]) -> None:
            heard.append([event.kind for event in events])

        with closing(EventFeed(SqlWorkspaceStore(database), open_event_signal(database))) as feed:
            feed.subscribe(listen)
            assert heard == []
            folder.unlink()
            wait_until(lambda: heard == [[]])
            SqlOutbox(database).publish("kind", {}, TIMESTAMP)
            wait_until(lambda: heard == [[], ["kind"]])
