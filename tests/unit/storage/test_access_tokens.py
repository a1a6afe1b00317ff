"""Access tokens: created, stored as digests, expired, revoked."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.storage.access_tokens import AccessTokens, TokenCache
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlTokenTable
from skillhall.errors import Conflict, FieldRefused, TokenNotFound
from tests.support.actors import ACTOR
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


@pytest.fixture
def cache(database: SwitchableDatabase) -> Iterator[TokenCache]:
    recorder = UseRecorder()
    with closing(recorder), closing(TokenCache(SqlTokenTable(database), recorder)) as cache:
        yield cache


def test_only_the_digest_of_a_token_is_stored(tokens: AccessTokens, tmp_path: Path) -> None:
    token = tokens.create(" laptop ", actor=ACTOR)
    assert re.fullmatch(r"skh_[A-Za-z0-9_-]{43}", token.text)
    assert token.text != tokens.create("other", actor=ACTOR).text
    assert [item.label for item in tokens.list()] == ["laptop", "other"]
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("test.db*"))
    assert token.stored.digest.encode() in stored
    assert token.text.encode() not in stored


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a\0", "x" * 101, "\ud800"])
def test_invalid_label_is_rejected(label: str, tokens: AccessTokens) -> None:
    with pytest.raises(FieldRefused):
        tokens.create(label, actor=ACTOR)
    assert tokens.list() == []


def test_label_must_be_unique(tokens: AccessTokens) -> None:
    tokens.create("laptop", actor=ACTOR)
    with pytest.raises(Conflict):
        tokens.create("laptop", actor=ACTOR)


def test_unknown_token_cannot_be_revoked(tokens: AccessTokens) -> None:
    token = tokens.create("laptop", actor=ACTOR)
    tokens.revoke(token.stored.id, actor=ACTOR)
    for name in ("laptop", token.stored.id, "%", ""):
        with pytest.raises(TokenNotFound):
            tokens.revoke(name, actor=ACTOR)


def test_new_token_belongs_to_the_operator_and_allows_what_tokens_always_allowed(
    tokens: AccessTokens,
) -> None:
    stored = tokens.create("laptop", actor=ACTOR).stored
    assert (stored.owner, stored.scopes) == ("operator", ("read", "write", "review", "admin"))
    assert (stored.expires, stored.used, stored.revoked) == (None, None, None)
    assert tokens.list() == [stored]
    assert tokens.describe_state(stored) == "active"


def test_scopes_include_those_that_they_need(tokens: AccessTokens) -> None:
    stored = tokens.create(
        "ci", "dev1", [AccessScope.WRITE, AccessScope.REPORT], actor=ACTOR
    ).stored
    assert tokens.list() == [stored]
    assert (stored.owner, stored.scopes) == ("dev1", ("read", "write", "report"))


def test_token_expires_after_its_lifetime(database: SwitchableDatabase) -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    tokens = AccessTokens(SqlTokenTable(database), lambda: now)
    stored = tokens.create("ci", lifetime=timedelta(days=90), actor=ACTOR).stored
    assert stored.expires == "2027-02-14T00:00:00+00:00"
    now += timedelta(days=90, seconds=-1)
    assert tokens.describe_state(stored) == "active"
    now += timedelta(seconds=1)
    assert tokens.describe_state(stored) == "expired"


def test_lifetime_beyond_the_calendar_is_rejected(tokens: AccessTokens) -> None:
    with pytest.raises(FieldRefused):
        tokens.create("ci", lifetime=timedelta(days=999_999_999), actor=ACTOR)


def test_revoked_token_is_listed_without_its_digest_and_frees_its_label(
    tokens: AccessTokens,
) -> None:
    first = tokens.create("laptop", actor=ACTOR).stored
    tokens.revoke("laptop", actor=ACTOR)
    second = tokens.create("laptop", actor=ACTOR).stored
    assert tokens.list() == [second]
    revoked, active = tokens.list(with_revoked=True)
    assert (revoked.id, revoked.digest, active) == (first.id, "", second)
    assert revoked.revoked
    assert [tokens.describe_state(token) for token in (revoked, active)] == ["revoked", "active"]


def test_token_cache_survives_an_outage(
    tokens: AccessTokens, database: SwitchableDatabase, cache: TokenCache
) -> None:
    token = tokens.create("laptop", actor=ACTOR)
    cache.try_refresh()
    assert cache.find(token.text.encode())
    assert not cache.find(token.stored.digest.encode())
    assert not cache.find(b"")
    database.is_down = True
    cache.handle_events(())
    cache.try_refresh()
    assert cache.find(token.text.encode())
    database.is_down = False
    tokens.revoke("laptop", actor=ACTOR)
    cache.handle_events(())  # the database's event does the same
    wait_until(lambda: not cache.find(token.text.encode()))


def test_token_cache_notifies_subscribers_of_a_revocation(
    tokens: AccessTokens, cache: TokenCache
) -> None:
    token = tokens.create("laptop", actor=ACTOR)
    cache.try_refresh()
    changed = threading.Event()
    cache.subscribe(changed.set)
    cache.try_refresh()
    assert not changed.is_set()
    assert cache.find_by_id(token.stored.id) == token.stored
    tokens.revoke("laptop", actor=ACTOR)
    cache.handle_events(())
    assert changed.wait(DEADLINE)
    assert cache.find_by_id(token.stored.id) is None
