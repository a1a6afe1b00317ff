"""Contract of revocations in both databases."""

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Connection

from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.trust.revocations import Revocation, RevocationEntry, find_revoked
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.revocation_rows import SqlRevocationTable, add_revocation
from skillhall._internal.storage.sql.tables import events
from tests.support.databases import TIMESTAMP

ONE, OTHER = (f"sha256:{digit * 64}" for digit in "12")
SECONDS = 1_767_323_045  # of TIMESTAMP
REVIEWER = Actor("dev1", "ci")


def revoke(
    database: Database, digest: str = ONE, at: str = TIMESTAMP, *, is_revoked: bool = True
) -> RevocationEntry:
    revocation = Revocation(digest, "pdf", "steals keys", at, "pdf@4")

    def work(connection: Connection) -> RevocationEntry:
        return add_revocation(connection, REVIEWER, revocation, is_revoked=is_revoked)

    return database.write(work)


def test_revocation_is_listed_with_its_reason_and_actor(database: Database) -> None:
    entry = revoke(database)
    assert SqlRevocationTable(database).list() == [entry]
    assert entry == RevocationEntry(
        SECONDS, ONE, "pdf", "steals keys", TIMESTAMP, "pdf@4", "dev1/ci", is_revoked=True
    )
    kinds = database.read(lambda connection: connection.execute(events.select()).mappings().all())
    assert [row["kind"] for row in kinds] == ["revocations-changed"]


def test_repeated_revocation_adds_no_entry(database: Database) -> None:
    first = revoke(database)
    assert revoke(database, at="2030-01-01T00:00:00Z") == first
    assert SqlRevocationTable(database).list() == [first]


def test_number_is_a_time_and_grows_even_if_the_clock_goes_back(database: Database) -> None:
    numbers = [
        revoke(database).number,
        revoke(database, OTHER, "2025-01-01T00:00:00Z").number,
        revoke(database, OTHER, is_revoked=False).number,
        revoke(database, OTHER, "2026-01-02T04:00:00Z").number,
    ]
    assert numbers == [SECONDS, SECONDS + 1, SECONDS + 2, 1_767_326_400]


def test_another_entry_withdraws_a_revocation(database: Database) -> None:
    revoke(database)
    revoke(database, OTHER)
    revoke(database, is_revoked=False)
    entries = SqlRevocationTable(database).list()
    assert [entry.is_revoked for entry in entries] == [True, True, False]
    assert [entry.digest for entry in find_revoked(entries)] == [OTHER]


def test_unknown_digest_cannot_be_restored(database: Database) -> None:
    assert revoke(database, is_revoked=False).number == 0
    assert SqlRevocationTable(database).list() == []


def test_concurrent_revocations_get_different_numbers(database: Database) -> None:
    count = 8
    digests = [f"sha256:{number:064x}" for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        entries = [*pool.map(lambda digest: revoke(database, digest), digests)]
    numbers = sorted(entry.number for entry in entries)
    assert numbers == [*range(SECONDS, SECONDS + count)]
