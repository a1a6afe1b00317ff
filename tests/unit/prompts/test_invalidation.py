"""What servers tell each other about repositories."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompts.invalidation import RepositoryInvalidator
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlOutbox
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceStore
from tests.support.databases import TIMESTAMP
from tests.support.switchable_database import SwitchableDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as made:
        yield made


def events(database: SwitchableDatabase) -> Sequence[Event]:
    return SqlWorkspaceStore(database).read(lambda read: read.events(0, 100))


def heard(announcer: RepositoryInvalidator, told: Sequence[Event]) -> list[tuple[list[str], str]]:
    found: list[tuple[list[str], str]] = []
    announcer.handle_events(told, lambda urls, branch: found.append(([*urls], branch)))
    return found


def test_others_hear_of_it_and_the_one_who_told_does_not(database: SwitchableDatabase) -> None:
    one, other = (RepositoryInvalidator(SqlOutbox(database)) for _ in range(2))
    one.publish(["https://host/acme/skills.git", "git@host:acme/skills"], "main")
    assert heard(other, events(database)) == [(["https://host/acme/skills"], "main")]
    assert heard(one, events(database)) == []


def test_no_credentials_are_told(database: SwitchableDatabase) -> None:
    RepositoryInvalidator(SqlOutbox(database)).publish(
        ["https://ada:pa55@host/acme/skills"], "main"
    )
    assert "pa55" not in repr(events(database))


@pytest.mark.parametrize(
    ("urls", "branch"),
    [([], "main"), (["https://h/a\0b"], "main"), (["https://h/a"], "x\0"), (["\ud800"], "main")],
)
def test_what_no_database_can_keep_is_not_told(
    urls: list[str], branch: str, database: SwitchableDatabase
) -> None:
    RepositoryInvalidator(SqlOutbox(database)).publish(urls, branch)
    assert [*events(database)] == []


def test_without_a_database_nobody_is_told_and_nothing_fails(database: SwitchableDatabase) -> None:
    database.is_down = True
    RepositoryInvalidator(SqlOutbox(database)).publish(["https://host/acme/skills"], "main")
    database.is_down = False
    assert [*events(database)] == []
