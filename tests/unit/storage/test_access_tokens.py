"""Tokens of servers: made once, known by digests, gone when revoked."""

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
    ) as made:
        yield made


@pytest.fixture
def tokens(database: SwitchableDatabase) -> AccessTokens:
    return AccessTokens(SqlTokenTable(database))


def test_a_token_is_shown_once_and_only_its_digest_is_kept(
    tokens: AccessTokens, tmp_path: Path
) -> None:
    made = tokens.create(" laptop ")
    assert re.fullmatch(r"skh_[A-Za-z0-9_-]{43}", made.text)
    assert made.text != tokens.create("other").text
    assert [item.label for item in tokens.list()] == ["laptop", "other"]
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("test.db*"))
    assert made.stored.digest.encode() in kept
    assert made.text.encode() not in kept


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a\0", "x" * 101, "\ud800"])
def test_a_label_is_one_short_line(label: str, tokens: AccessTokens) -> None:
    with pytest.raises(FieldRefused):
        tokens.create(label)
    assert tokens.list() == []


def test_a_label_names_one_token(tokens: AccessTokens) -> None:
    tokens.create("laptop")
    with pytest.raises(Conflict):
        tokens.create("laptop")


def test_what_is_not_there_cannot_be_revoked(tokens: AccessTokens) -> None:
    made = tokens.create("laptop")
    tokens.revoke(made.stored.id)
    for name in ("laptop", made.stored.id, "%", ""):
        with pytest.raises(TokenNotFound):
            tokens.revoke(name)


def test_a_ring_admits_what_is_there_and_what_was_while_the_database_is_away(
    tokens: AccessTokens, database: SwitchableDatabase
) -> None:
    made = tokens.create("laptop")
    with closing(TokenCache(SqlTokenTable(database))) as ring:
        ring.try_refresh()
        assert ring.find(made.text.encode())
        assert not ring.find(made.stored.digest.encode())
        assert not ring.find(b"")
        database.is_down = True
        ring.handle_events(())
        ring.try_refresh()
        assert ring.find(made.text.encode())
        database.is_down = False
        tokens.revoke("laptop")
        ring.handle_events(())  # as the event of the database does
        wait_until(lambda: not ring.find(made.text.encode()))


def test_a_ring_reports_a_revoked_token(tokens: AccessTokens, database: SwitchableDatabase) -> None:
    made = tokens.create("laptop")
    with closing(TokenCache(SqlTokenTable(database))) as ring:
        ring.try_refresh()
        changed = threading.Event()
        ring.subscribe(changed.set)
        ring.try_refresh()
        assert not changed.is_set()
        assert ring.find_by_id(made.stored.id) == made.stored
        tokens.revoke("laptop")
        ring.handle_events(())
        assert changed.wait(DEADLINE)
        assert ring.find_by_id(made.stored.id) is None
