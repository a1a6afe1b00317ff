"""Access tokens: created, stored as digests, revoked."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.storage.access_tokens import AccessTokens, TokenCache
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlTokenTable
from skillhall.errors import Conflict, FieldRefused, TokenNotFound
from tests.support.databases import TIMESTAMP
from tests.support.replicas import DEADLINE, wait_until
from tests.support.switchable_database import SwitchableDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as database:
        yield database


@pytest.fixture
def tokens(database: SwitchableDatabase) -> AccessTokens:
    return AccessTokens(SqlTokenTable(database))


def test_only_the_digest_of_a_token_is_stored(tokens: AccessTokens, tmp_path: Path) -> None:
    token = tokens.create(" laptop ")
    assert re.fullmatch(r"skh_[A-Za-z0-9_-]{43}", token.text)
    assert token.text != tokens.create("other").text
    assert [item.label for item in tokens.list()] == ["laptop", "other"]
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("test.db*"))
    assert token.stored.digest.encode() in stored
    assert token.text.encode() not in stored


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a\0", "x" * 101, "\ud800"])
def test_invalid_label_is_rejected(label: str, tokens: AccessTokens) -> None:
    with pytest.raises(FieldRefused):
        tokens.create(label)
    assert tokens.list() == []


def test_label_must_be_unique(tokens: AccessTokens) -> None:
    tokens.create("laptop")
    with pytest.raises(Conflict):
        tokens.create("laptop")


def test_unknown_token_cannot_be_revoked(tokens: AccessTokens) -> None:
    token = tokens.create("laptop")
    tokens.revoke(token.stored.id)
    for name in ("laptop", token.stored.id, "%", ""):
        with pytest.raises(TokenNotFound):
            tokens.revoke(name)


def test_token_cache_survives_an_outage(tokens: AccessTokens, database: SwitchableDatabase) -> None:
    token = tokens.create("laptop")
    with closing(TokenCache(SqlTokenTable(database))) as cache:
        cache.try_refresh()
        assert cache.find(token.text.encode())
        assert not cache.find(token.stored.digest.encode())
        assert not cache.find(b"")
        database.is_down = True
        cache.handle_events(())
        cache.try_refresh()
        assert cache.find(token.text.encode())
        database.is_down = False
        tokens.revoke("laptop")
        cache.handle_events(())  # the database's event does the same
        wait_until(lambda: not cache.find(token.text.encode()))


def test_token_cache_notifies_subscribers_of_a_revocation(
    tokens: AccessTokens, database: SwitchableDatabase
) -> None:
    token = tokens.create("laptop")
    with closing(TokenCache(SqlTokenTable(database))) as cache:
        cache.try_refresh()
        changed = threading.Event()
        cache.subscribe(changed.set)
        cache.try_refresh()
        assert not changed.is_set()
        assert cache.find_by_id(token.stored.id) == token.stored
        tokens.revoke("laptop")
        cache.handle_events(())
        assert changed.wait(DEADLINE)
        assert cache.find_by_id(token.stored.id) is None
