from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import make_url

from skillhall._internal.storage.ports import WorkspaceStore
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP, truncate_tables
from tests.support.memory_store import MemoryStore

OpenDatabase: TypeAlias = Callable[[str], Database]


@pytest.fixture
def open_database_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """Return a function that opens an empty database of a kind."""
    with ExitStack() as stack:

        def open_database(kind: str) -> Database:
            url = build_sqlite_url(str(tmp_path / "test.db"))
            if kind == "postgres":
                url = make_url(request.getfixturevalue("postgres"))
                truncate_tables(url.render_as_string(hide_password=False))
            return stack.enter_context(closing(Database(url, TIMESTAMP)))

        yield open_database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, open_database_of: OpenDatabase) -> Database:
    """Empty database of each kind."""
    return open_database_of(request.param)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, open_database_of: OpenDatabase) -> WorkspaceStore:
    """Empty store of each kind."""
    if request.param == "memory":
        return MemoryStore()
    return SqlWorkspaceStore(open_database_of(request.param), actor=ACTOR)
