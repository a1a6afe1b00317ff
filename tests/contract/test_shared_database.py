"""What servers share, in both kinds of databases: versions, bytes that are kept once, events."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from sqlalchemy import func, select

from skillhall._internal.storage.ports import SharedSkillWriter
from skillhall._internal.storage.records import Event, StoredToken
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_signal import open_event_signal
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import blobs
from skillhall._internal.storage.sql.token_rows import SqlOutbox, SqlTokenTable
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceStore
from skillhall.errors import Conflict
from tests.support.databases import TIMESTAMP

DEADLINE = 120  # seconds
PLAIN, PROGRAM = 0o644, 0o755
ONE, OTHER = {"SKILL.md": (b"one", PLAIN)}, {"SKILL.md": (b"other", PLAIN)}


@pytest.fixture
def skills(database: Database) -> SqlSharedSkillTable:
    return SqlSharedSkillTable(database)


class Heard:
    """The events that a server hears of."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self._came = threading.Condition()

    def __call__(self, events: Sequence[Event]) -> None:
        with self._came:
            self.events += [(event.kind, event.subject) for event in events]
            self._came.notify_all()

    def wait_for(self, *expected: tuple[str, str]) -> None:
        with self._came:
            assert self._came.wait_for(lambda: self.events == [*expected], DEADLINE), self.events


@pytest.fixture
def heard(database: Database) -> Iterator[Heard]:
    with closing(EventFeed(SqlWorkspaceStore(database), open_event_signal(database))) as feed:
        listener = Heard()
        feed.subscribe(listener)
        yield listener


def kept(database: Database) -> int:
    """How many contents the database keeps."""
    count = select(func.count()).select_from(blobs)
    return database.read(lambda connection: connection.execute(count).scalar_one())


def test_a_skill_is_read_back(skills: SqlSharedSkillTable) -> None:
    files = {"SKILL.md": (b"text", PLAIN), "a/run.sh": (bytes(range(256)), PROGRAM)}
    skills.write(lambda write: write.put("pdf", files, "added"), TIMESTAMP)
    found = skills.read(lambda read: read.find("pdf"))
    assert found is not None
    assert (found.origin, found.updated) == ("added", TIMESTAMP)
    kept_files = found.files
    read = skills.read(
        lambda read: {path: (read.read_blob(f.digest), f.mode) for path, f in kept_files.items()}
    )
    assert read == files
    assert skills.read(lambda read: read.find("csv")) is None
    assert skills.read(lambda read: read.read_blob("0" * 64)) is None


def test_a_version_never_comes_back(skills: SqlSharedSkillTable) -> None:
    seen: list[int] = []
    for _ in range(3):
        skills.write(lambda write: write.put("pdf", ONE, ""), TIMESTAMP)
        seen.append(skills.read(lambda read: read.versions())["pdf"])
        skills.write(lambda write: write.delete("pdf"), TIMESTAMP)
        assert skills.read(lambda read: read.versions()) == {}
    assert seen == sorted(set(seen))


def test_equal_bytes_are_kept_once_and_as_long_as_somebody_needs_them(
    skills: SqlSharedSkillTable, database: Database
) -> None:
    same = {"a": (b"same", PLAIN), "b": (b"same", PROGRAM)}
    skills.write(lambda write: write.put("one", same, ""), TIMESTAMP)
    skills.write(lambda write: write.put("other", same, ""), TIMESTAMP)
    uploads = SqlUploadTable(database)
    uploads.put("team", same, "", TIMESTAMP, max_uploads=50)
    assert kept(database) == 1
    skills.write(lambda write: write.put("one", ONE, ""), TIMESTAMP)
    skills.write(lambda write: write.delete("other"), TIMESTAMP)
    assert kept(database) == 2
    uploads.put("team", ONE, "", TIMESTAMP, max_uploads=50)
    assert kept(database) == 1


def test_a_change_that_fails_changes_and_tells_nothing(
    skills: SqlSharedSkillTable, database: Database, heard: Heard
) -> None:
    skills.write(lambda write: write.put("pdf", ONE, ""), TIMESTAMP)

    def work(write: SharedSkillWriter) -> None:
        write.put("pdf", OTHER, "")
        write.put("csv", OTHER, "")
        write.delete("pdf")
        raise Conflict("csv")

    before = skills.read(lambda read: (read.versions(), read.find("pdf")))
    with pytest.raises(Conflict):
        skills.write(work, TIMESTAMP)
    assert skills.read(lambda read: (read.versions(), read.find("pdf"))) == before
    assert kept(database) == 1
    SqlOutbox(database).publish("last", {}, TIMESTAMP)
    heard.wait_for(("skill-changed", "pdf"), ("last", ""))


def test_all_servers_hear_what_one_does(
    skills: SqlSharedSkillTable, database: Database, heard: Heard
) -> None:
    uploads, tokens = SqlUploadTable(database), SqlTokenTable(database)

    def put_both(write: SharedSkillWriter) -> None:
        write.put("pdf", ONE, "")
        write.put("csv", ONE, "")

    skills.write(put_both, TIMESTAMP)
    skills.write(lambda write: write.delete("pdf"), TIMESTAMP)
    skills.write(lambda write: write.versions(), TIMESTAMP)
    uploads.put("a", ONE, "1", TIMESTAMP, max_uploads=1)
    uploads.put("a", ONE, "1", TIMESTAMP, max_uploads=1)
    uploads.put("b", ONE, "1", TIMESTAMP, max_uploads=1)
    tokens.add(StoredToken("1", "laptop", "digest", TIMESTAMP))
    tokens.delete("nobody", TIMESTAMP)
    tokens.delete("laptop", TIMESTAMP)
    heard.wait_for(
        ("skill-changed", "pdf"),
        ("skill-changed", "csv"),
        ("skill-deleted", "pdf"),
        ("upload-changed", "a"),
        ("upload-changed", "b"),
        ("upload-deleted", "a"),
        ("tokens-changed", ""),
        ("tokens-changed", ""),
    )


def test_of_many_changes_at_once_each_sees_those_before_it(skills: SqlSharedSkillTable) -> None:
    taken: list[str] = []

    def take(name: str) -> None:
        def work(write: SharedSkillWriter) -> bool:
            is_free = "pdf" not in write.versions()
            if is_free:
                write.put("pdf", {"SKILL.md": (name.encode(), PLAIN)}, "")
            return is_free

        if skills.write(work, TIMESTAMP):
            taken.append(name)

    crowd = [threading.Thread(target=take, args=[f"{number}"]) for number in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(DEADLINE)
    assert len(taken) == 1


def test_a_token_is_found_by_id_and_by_label_which_is_there_once(database: Database) -> None:
    tokens = SqlTokenTable(database)
    laptop, phone = (
        StoredToken("1", "laptop", "a", TIMESTAMP),
        StoredToken("2", "phone", "b", TIMESTAMP),
    )
    tokens.add(laptop)
    tokens.add(phone)
    with pytest.raises(Conflict):
        tokens.add(StoredToken("3", "laptop", "c", TIMESTAMP))
    assert tokens.list() == [laptop, phone]
    assert [
        tokens.delete("1", TIMESTAMP),
        tokens.delete("1", TIMESTAMP),
        tokens.delete("phone", TIMESTAMP),
    ] == [
        True,
        False,
        True,
    ]
    assert tokens.list() == []
