"""The published list: rendered once, renewed, signed, and available without the database."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.policy.trust.revocations import LIST_TYPE, parse_revocation_list
from skillhall._internal.signing.keys import load_private_key, load_public_key
from skillhall._internal.signing.signers import KeySigner
from skillhall._internal.skill.signatures.envelope import read_envelope
from skillhall._internal.skill_store.trust.revocation_list import (
    RENEWAL_INTERVAL,
    PublishedRevocations,
)
from skillhall._internal.storage.server_revocations import RevocationCache, Revocations
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.revocation_rows import SqlRevocationTable
from skillhall.errors import DatabaseUnavailable, FieldRefused
from tests.support.databases import TIMESTAMP
from tests.support.signatures import KEYS

DIGEST = f"sha256:{'1' * 64}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    url = build_sqlite_url(str(tmp_path / "server.db"))
    with closing(Database(url, TIMESTAMP, allow_outage=True)) as opened:
        yield opened


@pytest.fixture
def open_cache(database: Database, tmp_path: Path) -> Iterator[Callable[[], RevocationCache]]:
    caches = []

    def open_one() -> RevocationCache:
        caches.append(RevocationCache(SqlRevocationTable(database), str(tmp_path)))
        return caches[-1]

    yield open_one
    for cache in caches:
        cache.close()


def revoke(database: Database, digest: str = DIGEST) -> None:
    table = Revocations(SqlRevocationTable(database))
    table.revoke(SYSTEM_ACTOR, [digest], skill="pdf", reason="bad")


def test_list_is_rendered_again_after_a_change_and_after_an_hour(
    database: Database, open_cache: Callable[[], RevocationCache]
) -> None:
    now, cache = [1_795_000_000.0], open_cache()
    cache.try_refresh()
    published = PublishedRevocations(cache, clock=lambda: now[0])
    first = published.get_document()
    assert published.get_document() is first
    assert json.loads(first.data) == {
        "number": 0,
        "issued": "2026-11-18T11:06:40Z",
        "expires": "2026-11-25T11:06:40Z",
        "revoked": [],
    }
    revoke(database)
    cache.try_refresh()
    changed = published.get_document()
    assert [one.digest for one in parse_revocation_list(changed.data, "x").revoked] == [DIGEST]
    now[0] += RENEWAL_INTERVAL
    assert published.get_document().digest != changed.digest


def test_list_is_signed_with_the_key_of_the_server(
    open_cache: Callable[[], RevocationCache],
) -> None:
    cache = open_cache()
    cache.try_refresh()
    published = PublishedRevocations(cache, load_private_key(KEYS.private, "k"))
    assert published.is_signed
    signed = read_envelope(json.loads(published.get_document().data), LIST_TYPE)
    assert KeySigner("acme", load_public_key(KEYS.public, "k")).accepts(signed)
    assert parse_revocation_list(signed.statement, "x").revoked == ()


def test_last_state_counts_while_the_database_is_down(
    database: Database, open_cache: Callable[[], RevocationCache], tmp_path: Path
) -> None:
    revoke(database)
    open_cache().try_refresh()
    database.close()
    (tmp_path / "server.db").write_bytes(b"not a database" * 1000)
    restarted = open_cache()
    restarted.try_refresh()
    assert restarted.revoked.by_digest.keys() == {DIGEST}
    assert DIGEST.encode() in PublishedRevocations(restarted).get_document().data


def test_list_is_unavailable_until_the_database_was_read_once(
    database: Database, open_cache: Callable[[], RevocationCache], tmp_path: Path
) -> None:
    database.close()
    (tmp_path / "server.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(DatabaseUnavailable):
        PublishedRevocations(open_cache()).get_document()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("digest", {"digests": ["sha256:1"], "reason": "bad"}),
        ("reason", {"digests": [DIGEST], "reason": " "}),
        ("reason", {"digests": [DIGEST], "reason": "two\nlines"}),
        ("instead", {"digests": [DIGEST], "reason": "bad", "instead": "x" * 301}),
    ],
)
def test_invalid_revocation_is_rejected(
    database: Database, field: str, values: dict[str, object]
) -> None:
    with pytest.raises(FieldRefused, match=field):
        Revocations(SqlRevocationTable(database)).revoke(SYSTEM_ACTOR, **values)  # type: ignore[arg-type] # any values
