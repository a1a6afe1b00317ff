"""Uploads in a database: caching, events and outages."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompt_server.uploads.database_uploads import (
    RECHECK_INTERVAL,
    DatabaseUploads,
)
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall.errors import DatabaseUnavailable, SourceUnknown
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.prompt_sources import ManualClock, make_upload
from tests.support.skills import make_skill_md
from tests.support.switchable_database import SwitchableDatabase

OTHER = {"bye.md": make_skill_md("bye")}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as database:
        yield database


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def uploads(database: SwitchableDatabase, clock: ManualClock, tmp_path: Path) -> DatabaseUploads:
    uploads = DatabaseUploads(SqlUploadTable(database), str(tmp_path), clock=clock.clock.monotonic)
    uploads.ingest(make_upload(), actor=ACTOR)
    return uploads


def make_events(kind: str, source: str) -> list[Event]:
    return [
        Event("skill-changed", source, "", 0, {}, TIMESTAMP),
        Event(kind, source, "", 0, {}, TIMESTAMP),
    ]


def upload_by_another_server(database: SwitchableDatabase, tmp_path: Path) -> None:
    DatabaseUploads(SqlUploadTable(database), str(tmp_path)).ingest(
        make_upload(files=OTHER), actor=ACTOR
    )


def test_event_invalidates_the_cached_version(
    uploads: DatabaseUploads, database: SwitchableDatabase, tmp_path: Path
) -> None:
    before = uploads.version("team")
    upload_by_another_server(database, tmp_path)
    uploads.handle_events(make_events("upload-changed", "other"))
    assert uploads.version("team") == before
    uploads.handle_events(make_events("upload-changed", "team"))
    assert uploads.version("team") != before


def test_change_without_event_is_noticed_by_recheck(
    uploads: DatabaseUploads, database: SwitchableDatabase, clock: ManualClock, tmp_path: Path
) -> None:
    before = uploads.version("team")
    upload_by_another_server(database, tmp_path)
    clock.seconds += RECHECK_INTERVAL - 1
    assert uploads.version("team") == before
    clock.seconds += 1
    after = uploads.version("team")
    assert after != before
    uploads.ingest(make_upload(), actor=ACTOR)
    uploads.handle_events(())
    assert uploads.version("team") == before


def test_deleted_upload_is_unknown_after_the_event(
    uploads: DatabaseUploads, database: SwitchableDatabase, tmp_path: Path
) -> None:
    uploads.version("team")
    DatabaseUploads(SqlUploadTable(database), str(tmp_path), max_sources=1).ingest(
        make_upload("other"), actor=ACTOR
    )
    uploads.handle_events(make_events("upload-deleted", "team"))
    with pytest.raises(SourceUnknown):
        uploads.version("team")


def test_outage_keeps_the_cached_version(
    uploads: DatabaseUploads, database: SwitchableDatabase, clock: ManualClock
) -> None:
    before = uploads.version("team")
    database.is_down = True
    clock.seconds += RECHECK_INTERVAL
    assert uploads.version("team") == before
    for call in (
        lambda: uploads.version("other"),
        lambda: uploads.ingest(make_upload(), actor=ACTOR),
    ):
        with pytest.raises(DatabaseUnavailable):
            call()
