"""What servers tell each other about repositories."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.prompts.invalidation import Announcer
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import file_url
from skillhall._internal.storage.sql.token_rows import SqlOutbox
from skillhall._internal.storage.sql.workspace_writes import SqlStore
from tests.support.databases import AT
from tests.support.switchable_database import Switched


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Switched]:
    with closing(Switched(file_url(str(tmp_path / "test.db")), AT)) as made:
        yield made


def events(database: Switched) -> Sequence[Event]:
    return SqlStore(database).read(lambda read: read.events(0, 100))


def heard(announcer: Announcer, told: Sequence[Event]) -> list[tuple[list[str], str]]:
    found: list[tuple[list[str], str]] = []
    announcer.hear(told, lambda urls, branch: found.append(([*urls], branch)))
    return found


def test_others_hear_of_it_and_the_one_who_told_does_not(database: Switched) -> None:
    one, other = (Announcer(SqlOutbox(database)) for _ in range(2))
    one.tell(["https://host/acme/skills.git", "git@host:acme/skills"], "main")
    assert heard(other, events(database)) == [(["https://host/acme/skills"], "main")]
    assert heard(one, events(database)) == []


def test_no_credentials_are_told(database: Switched) -> None:
    Announcer(SqlOutbox(database)).tell(["https://ada:pa55@host/acme/skills"], "main")
    assert "pa55" not in repr(events(database))


@pytest.mark.parametrize(
    ("urls", "branch"),
    [([], "main"), (["https://h/a\0b"], "main"), (["https://h/a"], "x\0"), (["\ud800"], "main")],
)
def test_what_no_database_can_keep_is_not_told(
    urls: list[str], branch: str, database: Switched
) -> None:
    Announcer(SqlOutbox(database)).tell(urls, branch)
    assert [*events(database)] == []


def test_without_a_database_nobody_is_told_and_nothing_fails(database: Switched) -> None:
    database.is_away = True
    Announcer(SqlOutbox(database)).tell(["https://host/acme/skills"], "main")
    database.is_away = False
    assert [*events(database)] == []
