"""Tokens of servers: made once, known by digests, gone when revoked."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.storage.access_tokens import TokenRing, Tokens
from skillhall._internal.storage.sql.engine import file_url
from skillhall._internal.storage.sql.token_rows import SqlTokens
from skillhall.errors import Conflict, FieldRefused, TokenNotFound
from tests.support.databases import AT
from tests.support.replicas import DEADLINE, until
from tests.support.switchable_database import Switched


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Switched]:
    with closing(Switched(file_url(str(tmp_path / "test.db")), AT)) as made:
        yield made


@pytest.fixture
def tokens(database: Switched) -> Tokens:
    return Tokens(SqlTokens(database))


def test_a_token_is_shown_once_and_only_its_digest_is_kept(tokens: Tokens, tmp_path: Path) -> None:
    made = tokens.new(" laptop ")
    assert re.fullmatch(r"skh_[A-Za-z0-9_-]{43}", made.text)
    assert made.text != tokens.new("other").text
    assert [one.label for one in tokens.list()] == ["laptop", "other"]
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("test.db*"))
    assert made.stored.digest.encode() in kept
    assert made.text.encode() not in kept


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a\0", "x" * 101, "\ud800"])
def test_a_label_is_one_short_line(label: str, tokens: Tokens) -> None:
    with pytest.raises(FieldRefused):
        tokens.new(label)
    assert tokens.list() == []


def test_a_label_names_one_token(tokens: Tokens) -> None:
    tokens.new("laptop")
    with pytest.raises(Conflict):
        tokens.new("laptop")


def test_what_is_not_there_cannot_be_revoked(tokens: Tokens) -> None:
    made = tokens.new("laptop")
    tokens.revoke(made.stored.id)
    for name in ("laptop", made.stored.id, "%", ""):
        with pytest.raises(TokenNotFound):
            tokens.revoke(name)


def test_a_ring_admits_what_is_there_and_what_was_while_the_database_is_away(
    tokens: Tokens, database: Switched
) -> None:
    made = tokens.new("laptop")
    with closing(TokenRing(SqlTokens(database))) as ring:
        ring.catch_up()
        assert ring.find(made.text.encode())
        assert not ring.find(made.stored.digest.encode())
        assert not ring.find(b"")
        database.is_away = True
        ring.hear(())
        ring.catch_up()
        assert ring.find(made.text.encode())
        database.is_away = False
        tokens.revoke("laptop")
        ring.hear(())  # as the event of the database does
        until(lambda: not ring.find(made.text.encode()))


def test_a_ring_reports_a_revoked_token(tokens: Tokens, database: Switched) -> None:
    made = tokens.new("laptop")
    with closing(TokenRing(SqlTokens(database))) as ring:
        ring.catch_up()
        changed = threading.Event()
        ring.subscribe(changed.set)
        ring.catch_up()
        assert not changed.is_set()
        assert ring.get(made.stored.id) == made.stored
        tokens.revoke("laptop")
        ring.hear(())
        assert changed.wait(DEADLINE)
        assert ring.get(made.stored.id) is None
