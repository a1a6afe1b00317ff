"""Shared uploads between looks at the database, and while it is away."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompts.uploads.database_uploads import LOOK, SharedUploads
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import file_url
from skillhall._internal.storage.sql.upload_rows import SqlUploads
from skillhall.errors import DatabaseUnavailable, SourceUnknown
from tests.support.databases import AT
from tests.support.prompt_sources import StandingClock, make_upload
from tests.support.skills import make_skill_md
from tests.support.switchable_database import Switched

OTHER = {"bye.md": make_skill_md("bye")}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Switched]:
    with closing(Switched(file_url(str(tmp_path / "test.db")), AT)) as made:
        yield made


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def uploads(database: Switched, clock: StandingClock, tmp_path: Path) -> SharedUploads:
    ours = SharedUploads(SqlUploads(database), str(tmp_path), clock=clock.clock.monotonic)
    ours.ingest(make_upload())
    return ours


def told(kind: str, source: str) -> list[Event]:
    return [Event("skill-changed", source, "", 0, {}, AT), Event(kind, source, "", 0, {}, AT)]


def by_another_server(database: Switched, tmp_path: Path) -> None:
    SharedUploads(SqlUploads(database), str(tmp_path)).ingest(make_upload(files=OTHER))


def test_another_server_s_upload_is_seen_when_it_is_told_of(
    uploads: SharedUploads, database: Switched, tmp_path: Path
) -> None:
    before = uploads.version("team")
    by_another_server(database, tmp_path)
    uploads.hear(told("upload-changed", "other"))
    assert uploads.version("team") == before
    uploads.hear(told("upload-changed", "team"))
    assert uploads.version("team") != before


def test_what_nobody_told_of_is_seen_after_a_while_or_after_an_outage(
    uploads: SharedUploads, database: Switched, clock: StandingClock, tmp_path: Path
) -> None:
    before = uploads.version("team")
    by_another_server(database, tmp_path)
    clock.passed += LOOK - 1
    assert uploads.version("team") == before
    clock.passed += 1
    after = uploads.version("team")
    assert after != before
    uploads.ingest(make_upload())
    uploads.hear(())
    assert uploads.version("team") == before


def test_a_dropped_upload_is_unknown_as_soon_as_that_is_told(
    uploads: SharedUploads, database: Switched, tmp_path: Path
) -> None:
    uploads.version("team")
    SharedUploads(SqlUploads(database), str(tmp_path), at_most=1).ingest(make_upload("other"))
    uploads.hear(told("upload-deleted", "team"))
    with pytest.raises(SourceUnknown):
        uploads.version("team")


def test_while_the_database_is_away_what_was_seen_stays(
    uploads: SharedUploads, database: Switched, clock: StandingClock
) -> None:
    before = uploads.version("team")
    database.is_away = True
    clock.passed += LOOK
    assert uploads.version("team") == before
    for asked in (lambda: uploads.version("other"), lambda: uploads.ingest(make_upload())):
        with pytest.raises(DatabaseUnavailable):
            asked()
