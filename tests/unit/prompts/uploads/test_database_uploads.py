"""Shared uploads between looks at the database, and while it is away."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompts.uploads.database_uploads import RECHECK_INTERVAL, DatabaseUploads
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall.errors import DatabaseUnavailable, SourceUnknown
from tests.support.databases import TIMESTAMP
from tests.support.prompt_sources import ManualClock, make_upload
from tests.support.skills import make_skill_md
from tests.support.switchable_database import SwitchableDatabase

OTHER = {"bye.md": make_skill_md("bye")}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as made:
        yield made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def uploads(database: SwitchableDatabase, clock: ManualClock, tmp_path: Path) -> DatabaseUploads:
    ours = DatabaseUploads(SqlUploadTable(database), str(tmp_path), clock=clock.clock.monotonic)
    ours.ingest(make_upload())
    return ours


def told(kind: str, source: str) -> list[Event]:
    return [
        Event("skill-changed", source, "", 0, {}, TIMESTAMP),
        Event(kind, source, "", 0, {}, TIMESTAMP),
    ]


def by_another_server(database: SwitchableDatabase, tmp_path: Path) -> None:
    DatabaseUploads(SqlUploadTable(database), str(tmp_path)).ingest(make_upload(files=OTHER))


def test_another_server_s_upload_is_seen_when_it_is_told_of(
    uploads: DatabaseUploads, database: SwitchableDatabase, tmp_path: Path
) -> None:
    before = uploads.version("team")
    by_another_server(database, tmp_path)
    uploads.handle_events(told("upload-changed", "other"))
    assert uploads.version("team") == before
    uploads.handle_events(told("upload-changed", "team"))
    assert uploads.version("team") != before


def test_what_nobody_told_of_is_seen_after_a_while_or_after_an_outage(
    uploads: DatabaseUploads, database: SwitchableDatabase, clock: ManualClock, tmp_path: Path
) -> None:
    before = uploads.version("team")
    by_another_server(database, tmp_path)
    clock.seconds += RECHECK_INTERVAL - 1
    assert uploads.version("team") == before
    clock.seconds += 1
    after = uploads.version("team")
    assert after != before
    uploads.ingest(make_upload())
    uploads.handle_events(())
    assert uploads.version("team") == before


def test_a_dropped_upload_is_unknown_as_soon_as_that_is_told(
    uploads: DatabaseUploads, database: SwitchableDatabase, tmp_path: Path
) -> None:
    uploads.version("team")
    DatabaseUploads(SqlUploadTable(database), str(tmp_path), max_sources=1).ingest(
        make_upload("other")
    )
    uploads.handle_events(told("upload-deleted", "team"))
    with pytest.raises(SourceUnknown):
        uploads.version("team")


def test_while_the_database_is_away_what_was_seen_stays(
    uploads: DatabaseUploads, database: SwitchableDatabase, clock: ManualClock
) -> None:
    before = uploads.version("team")
    database.is_down = True
    clock.seconds += RECHECK_INTERVAL
    assert uploads.version("team") == before
    for asked in (lambda: uploads.version("other"), lambda: uploads.ingest(make_upload())):
        with pytest.raises(DatabaseUnavailable):
            asked()
