"""Cache invalidation between servers."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompt_server.invalidation import RepositoryInvalidator
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.events.event_rows import SqlOutbox
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.switchable_database import SwitchableDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as database:
        yield database


def read_events(database: SwitchableDatabase) -> Sequence[Event]:
    return SqlWorkspaceStore(database, actor=ACTOR).read(lambda read: read.events(0, 100))


def handle(
    invalidator: RepositoryInvalidator, events: Sequence[Event]
) -> list[tuple[list[str], str]]:
    calls: list[tuple[list[str], str]] = []
    invalidator.handle_events(events, lambda urls, branch: calls.append(([*urls], branch)))
    return calls


def test_event_is_handled_by_other_servers_only(database: SwitchableDatabase) -> None:
    first, second = (RepositoryInvalidator(SqlOutbox(database)) for _ in range(2))
    first.publish(["https://host/acme/skills.git", "git@host:acme/skills"], "main")
    assert handle(second, read_events(database)) == [(["https://host/acme/skills"], "main")]
    assert handle(first, read_events(database)) == []


def test_event_contains_no_credentials(database: SwitchableDatabase) -> None:
    RepositoryInvalidator(SqlOutbox(database)).publish(
        ["https://ada:pa55@host/acme/skills"], "main"
    )
    assert "pa55" not in repr(read_events(database))


@pytest.mark.parametrize(
    ("urls", "branch"),
    [([], "main"), (["https://h/a\0b"], "main"), (["https://h/a"], "x\0"), (["\ud800"], "main")],
)
def test_values_that_cannot_be_stored_are_not_published(
    urls: list[str], branch: str, database: SwitchableDatabase
) -> None:
    RepositoryInvalidator(SqlOutbox(database)).publish(urls, branch)
    assert [*read_events(database)] == []


def test_publish_without_database_does_not_fail(database: SwitchableDatabase) -> None:
    database.is_down = True
    RepositoryInvalidator(SqlOutbox(database)).publish(["https://host/acme/skills"], "main")
    database.is_down = False
    assert [*read_events(database)] == []
