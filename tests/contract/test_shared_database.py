"""Contract of shared databases: versions, blobs stored once, events."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace

import pytest
from sqlalchemy import func, select

from skillhall._internal.storage.records import Event, SignIn, StoredToken, format_time
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.events.event_feed import EventFeed
from skillhall._internal.storage.sql.events.event_rows import SqlOutbox
from skillhall._internal.storage.sql.events.event_signal import open_event_signal
from skillhall._internal.storage.sql.skill_rows import SharedSkillWriter, SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import blobs, sign_ins
from skillhall._internal.storage.sql.token_rows import (
    MAX_SIGN_INS,
    SqlSignInTable,
    SqlTokenTable,
)
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall.errors import Conflict
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP

DEADLINE = 120  # seconds
EXPIRY = "2099-01-01T00:00:00+00:00"
PLAIN, PROGRAM = 0o644, 0o755
ONE, OTHER = {"SKILL.md": (b"one", PLAIN)}, {"SKILL.md": (b"other", PLAIN)}


@pytest.fixture
def skills(database: Database) -> SqlSharedSkillTable:
    return SqlSharedSkillTable(database)


class ReceivedEvents:
    """Events that a server received."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self._condition = threading.Condition()

    def __call__(self, events: Sequence[Event]) -> None:
        with self._condition:
            self.events += [(event.kind, event.subject) for event in events]
            self._condition.notify_all()

    def wait_for(self, *expected: tuple[str, str]) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: self.events == [*expected], DEADLINE), (
                self.events
            )


@pytest.fixture
def received(database: Database) -> Iterator[ReceivedEvents]:
    with closing(
        EventFeed(SqlWorkspaceStore(database, actor=ACTOR), open_event_signal(database))
    ) as feed:
        events = ReceivedEvents()
        feed.subscribe(events)
        yield events


def count_blobs(database: Database) -> int:
    count = select(func.count()).select_from(blobs)
    return database.read(lambda connection: connection.execute(count).scalar_one())


def test_skill_can_be_read(skills: SqlSharedSkillTable) -> None:
    files = {"SKILL.md": (b"text", PLAIN), "a/run.sh": (bytes(range(256)), PROGRAM)}
    skills.write(lambda write: write.put("pdf", files, "added"), TIMESTAMP, actor=ACTOR)
    skill = skills.read(lambda read: read.find("pdf"))
    assert skill is not None
    assert (skill.origin, skill.updated) == ("added", TIMESTAMP)
    stored_files = skill.files
    read = skills.read(
        lambda read: {path: (read.read_blob(f.digest), f.mode) for path, f in stored_files.items()}
    )
    assert read == files
    assert skills.read(lambda read: read.find("csv")) is None
    assert skills.read(lambda read: read.read_blob("0" * 64)) is None


def test_version_is_never_reused(skills: SqlSharedSkillTable) -> None:
    versions: list[int] = []
    for _ in range(3):
        skills.write(lambda write: write.put("pdf", ONE, ""), TIMESTAMP, actor=ACTOR)
        versions.append(skills.read(lambda read: read.versions())["pdf"])
        skills.write(lambda write: write.delete("pdf"), TIMESTAMP, actor=ACTOR)
        assert skills.read(lambda read: read.versions()) == {}
    assert versions == sorted(set(versions))


def test_equal_bytes_are_stored_once_until_unused(
    skills: SqlSharedSkillTable, database: Database
) -> None:
    same = {"a": (b"same", PLAIN), "b": (b"same", PROGRAM)}
    skills.write(lambda write: write.put("one", same, ""), TIMESTAMP, actor=ACTOR)
    skills.write(lambda write: write.put("other", same, ""), TIMESTAMP, actor=ACTOR)
    uploads = SqlUploadTable(database)
    uploads.put("team", same, "", TIMESTAMP, max_uploads=50, actor=ACTOR)
    assert count_blobs(database) == 1
    skills.write(lambda write: write.put("one", ONE, ""), TIMESTAMP, actor=ACTOR)
    skills.write(lambda write: write.delete("other"), TIMESTAMP, actor=ACTOR)
    assert count_blobs(database) == 2
    uploads.put("team", ONE, "", TIMESTAMP, max_uploads=50, actor=ACTOR)
    assert count_blobs(database) == 2  # the first version still has the others
    skills.write(lambda write: write.delete("one"), TIMESTAMP, actor=ACTOR)
    assert count_blobs(database) == 2  # both are in the bin
    skills.write(lambda write: write.history.delete_files("one"), TIMESTAMP, actor=ACTOR)
    skills.write(lambda write: write.history.delete_files("other"), TIMESTAMP, actor=ACTOR)
    assert count_blobs(database) == 1


def test_failed_change_is_rolled_back_without_events(
    skills: SqlSharedSkillTable, database: Database, received: ReceivedEvents
) -> None:
    skills.write(lambda write: write.put("pdf", ONE, ""), TIMESTAMP, actor=ACTOR)

    def work(write: SharedSkillWriter) -> None:
        write.put("pdf", OTHER, "")
        write.put("csv", OTHER, "")
        write.delete("pdf")
        raise Conflict("csv")

    before = skills.read(lambda read: (read.versions(), read.find("pdf")))
    with pytest.raises(Conflict):
        skills.write(work, TIMESTAMP, actor=ACTOR)
    assert skills.read(lambda read: (read.versions(), read.find("pdf"))) == before
    assert count_blobs(database) == 1
    SqlOutbox(database).publish("last", {}, TIMESTAMP)
    received.wait_for(("skill-changed", "pdf"), ("last", ""))


def test_changes_publish_events(
    skills: SqlSharedSkillTable, database: Database, received: ReceivedEvents
) -> None:
    uploads, tokens = SqlUploadTable(database), SqlTokenTable(database)

    def put_both(write: SharedSkillWriter) -> None:
        write.put("pdf", ONE, "")
        write.put("csv", ONE, "")

    skills.write(put_both, TIMESTAMP, actor=ACTOR)
    skills.write(lambda write: write.delete("pdf"), TIMESTAMP, actor=ACTOR)
    skills.write(lambda write: write.versions(), TIMESTAMP, actor=ACTOR)
    uploads.put("a", ONE, "1", TIMESTAMP, max_uploads=1, actor=ACTOR)
    uploads.put("a", ONE, "1", TIMESTAMP, max_uploads=1, actor=ACTOR)
    uploads.put("b", ONE, "1", TIMESTAMP, max_uploads=1, actor=ACTOR)
    tokens.add(StoredToken("1", "laptop", "digest", TIMESTAMP), actor=ACTOR)
    tokens.revoke("unknown", TIMESTAMP, None, ACTOR)
    tokens.revoke("laptop", TIMESTAMP, None, ACTOR)
    received.wait_for(
        ("skill-changed", "pdf"),
        ("skill-changed", "csv"),
        ("skill-deleted", "pdf"),
        ("upload-changed", "a"),
        ("upload-changed", "b"),
        ("upload-deleted", "a"),
        ("tokens-changed", ""),
        ("tokens-changed", ""),
    )


def test_concurrent_changes_see_each_other(skills: SqlSharedSkillTable) -> None:
    taken: list[str] = []

    def take(name: str) -> None:
        def work(write: SharedSkillWriter) -> bool:
            is_free = "pdf" not in write.versions()
            if is_free:
                write.put("pdf", {"SKILL.md": (name.encode(), PLAIN)}, "")
            return is_free

        if skills.write(work, TIMESTAMP, actor=ACTOR):
            taken.append(name)

    threads = [threading.Thread(target=take, args=[f"{number}"]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert len(taken) == 1


def test_token_is_revoked_by_id_or_unique_label(database: Database) -> None:
    tokens = SqlTokenTable(database)
    laptop, phone = (
        StoredToken("1", "laptop", "a", TIMESTAMP),
        StoredToken("2", "phone", "b", TIMESTAMP),
    )
    tokens.add(laptop, actor=ACTOR)
    tokens.add(phone, actor=ACTOR)
    with pytest.raises(Conflict):
        tokens.add(StoredToken("3", "laptop", "c", TIMESTAMP), actor=ACTOR)
    assert tokens.list() == [laptop, phone]
    assert [
        tokens.revoke("1", TIMESTAMP, None, ACTOR),
        tokens.revoke("1", TIMESTAMP, None, ACTOR),
        tokens.revoke("phone", TIMESTAMP, None, ACTOR),
    ] == [
        True,
        False,
        True,
    ]
    assert tokens.list() == []
    assert [(token.label, token.digest) for token in tokens.list(with_revoked=True)] == [
        ("laptop", ""),
        ("phone", ""),
    ]


def make_sign_in(identity: str, number: int = 1, created: str = TIMESTAMP) -> SignIn:
    digest, token = f"d{identity}", f"{number}"
    return SignIn(identity, digest, token, created, created, EXPIRY, "192.0.2.1", "Fox")


def test_sign_in_is_found_by_the_digest_of_its_cookie_until_it_ends(database: Database) -> None:
    table = SqlSignInTable(database)
    first, second, other = make_sign_in("a"), make_sign_in("b"), make_sign_in("c", 2)
    for sign_in in (first, second, other):
        table.add(sign_in, actor=ACTOR)
    assert table.list() == [first, second, other]
    assert table.list("1") == [first, second]
    assert table.find("da") == first
    assert not table.delete("2", "a", TIMESTAMP, actor=ACTOR)  # of another token
    assert table.delete("1", "a", TIMESTAMP, actor=ACTOR)
    assert not table.delete("1", "a", TIMESTAMP, actor=ACTOR)
    assert (table.find("da"), table.find("db")) == (None, second)


def test_revocation_ends_the_sign_ins_of_the_token_alone(database: Database) -> None:
    tokens, table = SqlTokenTable(database), SqlSignInTable(database)
    for identity, label in (("1", "laptop"), ("2", "phone")):
        tokens.add(StoredToken(identity, label, label, TIMESTAMP), actor=ACTOR)
        table.add(make_sign_in(identity, int(identity)), actor=ACTOR)
    tokens.revoke("laptop", TIMESTAMP, None, ACTOR)
    assert [sign_in.token for sign_in in table.list()] == ["2"]


def test_new_sign_in_deletes_expired_ones_and_the_oldest_beyond_the_limit(
    database: Database,
) -> None:
    table = SqlSignInTable(database)
    table.add(replace(make_sign_in("expired", 2), expires=TIMESTAMP), actor=ACTOR)
    times = [format_time(1_800_000_000 + number) for number in range(MAX_SIGN_INS)]
    rows = [asdict(make_sign_in(f"{n}", created=time)) for n, time in enumerate(times)]
    database.write(lambda connection: connection.execute(sign_ins.insert(), rows))
    table.add(make_sign_in("new", created=format_time(1_800_010_000)), actor=ACTOR)
    assert len(table.list("1")) == MAX_SIGN_INS
    assert table.list("2") == []
    assert table.find("d0") is None
    assert table.find("d1") is not None


def test_uses_of_sign_ins_are_stored_once_a_minute(database: Database) -> None:
    table = SqlSignInTable(database)
    table.add(make_sign_in("a", created=format_time(1_800_000_000)), actor=ACTOR)
    for seconds in (30, 60, 90):
        table.record_uses({"a": 1_800_000_000 + seconds})
    assert [sign_in.used for sign_in in table.list()] == [format_time(1_800_000_060)]
