from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall.storage.database.engine import Database, file_url
from skillhall.storage.database.writing import SqlStore
from skillhall.storage.port import Store
from tests.support.databases import AT, empty
from tests.support.memory_store import MemoryStore


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of each kind."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres")
        empty(url)
        made = Database(url, AT)
    else:
        made = Database(file_url(str(tmp_path / "test.db")), AT)
    yield made
    made.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres")
        empty(url)
        made = Database(url, AT)
    else:
        made = Database(file_url(str(tmp_path / "test.db")), AT)
    yield SqlStore(made)
    made.close()
