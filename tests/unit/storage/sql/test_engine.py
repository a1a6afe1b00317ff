"""Database URLs, and failures of database files."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from skillhall._internal.storage.sql.engine import Database, build_sqlite_url, parse_database_url
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.workspace.workspace import LazyWorkspace
from skillhall.errors import ConfigInvalid, DatabaseFull, DatabaseUnavailable
from tests.support.actors import ACTOR
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
def test_url_selects_the_driver(text: str, driver: str) -> None:
    assert parse_database_url(text).drivername == driver


@pytest.mark.parametrize("text", ["", "x", "mysql://h/d", "sqlite://", "sqlite:///:memory:"])
def test_unsupported_url_is_rejected(text: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse_database_url(text)


def test_path_with_special_characters_works(tmp_path: Path) -> None:
    path = tmp_path / "a folder?x=1%20#"
    database = Database(build_sqlite_url(str(path / "my db")), TIMESTAMP)
    database.close()
    assert (path / "my db").stat().st_mode & 0o777 == 0o600


def test_full_disk_changes_nothing_and_keeps_reads_working(tmp_path: Path) -> None:
    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count=120")

    event.listen(Engine, "connect", limit)
    try:
        database = Database(build_sqlite_url(str(tmp_path / "full.db")), TIMESTAMP)
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
        session = workspace.sessions.create("one").id
        workspace.blocks.add(session, "note", "small")
        with pytest.raises(DatabaseFull):
            workspace.blocks.add(session, "note", "x" * 500_000)
        assert list_texts(workspace, session) == ["small"]
        workspace.blocks.add(session, "note", "more")
        database.close()
    finally:
        event.remove(Engine, "connect", limit)


def test_unusable_folder_raises_database_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(DatabaseUnavailable, match="cannot be used"):
        Database(build_sqlite_url(str(tmp_path / "file" / "x.db")), TIMESTAMP)


def test_lazy_workspace_opens_once_the_database_is_available() -> None:
    workspace = make_workspace(MemoryStore())
    results = [DatabaseUnavailable("it is down"), workspace]

    def make() -> object:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    lazy_workspace = LazyWorkspace(make)  # type: ignore[arg-type]  # one of the results is an error
    with pytest.raises(DatabaseUnavailable):
        lazy_workspace.open()
    assert lazy_workspace.open() is workspace
    assert lazy_workspace.open() is workspace
    lazy_workspace.close()
