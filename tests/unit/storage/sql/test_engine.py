"""What can go wrong with a database file, and what is said about it."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from skillhall._internal.storage.sql.engine import Database, build_sqlite_url, parse_database_url
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceStore
from skillhall._internal.workspace.workspace import LazyWorkspace
from skillhall.errors import ConfigInvalid, DatabaseFull, DatabaseUnavailable
from tests.support.databases import TIMESTAMP
from tests.support.memory_store import MemoryStore
from tests.support.workspaces import list_texts, make_workspace


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("sqlite:////x/y.db", "sqlite+pysqlite"),
        ("postgres://user@host/name", "postgresql+psycopg"),
        ("postgresql://user:pw@host:5432/name?sslmode=require", "postgresql+psycopg"),
    ],
)
def test_an_address_names_its_driver(text: str, driver: str) -> None:
    assert parse_database_url(text).drivername == driver


@pytest.mark.parametrize("text", ["", "x", "mysql://h/d", "sqlite://", "sqlite:///:memory:"])
def test_another_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse_database_url(text)


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "a folder?x=1%20#"
    database = Database(build_sqlite_url(str(path / "my db")), TIMESTAMP)
    database.close()
    assert (path / "my db").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_changes_nothing_and_reading_goes_on(tmp_path: Path) -> None:
    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count=80")

    event.listen(Engine, "connect", limit)
    try:
        database = Database(build_sqlite_url(str(tmp_path / "full.db")), TIMESTAMP)
        workspace = make_workspace(SqlWorkspaceStore(database))
        session = workspace.sessions.create("one").id
        workspace.blocks.add(session, "note", "small")
        with pytest.raises(DatabaseFull):
            workspace.blocks.add(session, "note", "x" * 500_000)
        assert list_texts(workspace, session) == ["small"]
        workspace.blocks.add(session, "note", "more")
        database.close()
    finally:
        event.remove(Engine, "connect", limit)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(DatabaseUnavailable, match="cannot be used"):
        Database(build_sqlite_url(str(tmp_path / "file" / "x.db")), TIMESTAMP)


def test_a_door_opens_once_the_database_is_there() -> None:
    made = make_workspace(MemoryStore())
    answers = [DatabaseUnavailable("it is down"), made]

    def make() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    door = LazyWorkspace(make)  # type: ignore[arg-type]  # one of the answers is an error
    with pytest.raises(DatabaseUnavailable):
        door.open()
    assert door.open() is made
    assert door.open() is made
    door.close()
