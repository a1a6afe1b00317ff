"""What servers share, in both kinds of databases: versions, bytes that are kept once, events."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from sqlalchemy import func, select

from skillhall._internal.storage.ports import SharedWriting
from skillhall._internal.storage.records import Event, StoredToken
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.event_feed import EventFeed
from skillhall._internal.storage.sql.event_signal import open_watch
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkills
from skillhall._internal.storage.sql.tables import blobs
from skillhall._internal.storage.sql.token_rows import SqlOutbox, SqlTokens
from skillhall._internal.storage.sql.upload_rows import SqlUploads
from skillhall._internal.storage.sql.workspace_writes import SqlStore
from skillhall.errors import Conflict
from tests.support.databases import AT

DEADLINE = 120  # seconds
PLAIN, PROGRAM = 0o644, 0o755
ONE, OTHER = {"SKILL.md": (b"one", PLAIN)}, {"SKILL.md": (b"other", PLAIN)}


@pytest.fixture
def skills(database: Database) -> SqlSharedSkills:
    return SqlSharedSkills(database)


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
    with closing(EventFeed(SqlStore(database), open_watch(database))) as feed:
        listener = Heard()
        feed.subscribe(listener)
        yield listener


def kept(database: Database) -> int:
    """How many contents the database keeps."""
    count = select(func.count()).select_from(blobs)
    return database.read(lambda connection: connection.execute(count).scalar_one())


def test_a_skill_is_read_back(skills: SqlSharedSkills) -> None:
    files = {"SKILL.md": (b"text", PLAIN), "a/run.sh": (bytes(range(256)), PROGRAM)}
    skills.change(lambda write: write.put("pdf", files, "added"), AT)
    found = skills.look(lambda read: read.find("pdf"))
    assert found is not None
    assert (found.origin, found.updated) == ("added", AT)
    kept_files = found.files
    read = skills.look(
        lambda read: {path: (read.read(f.digest), f.mode) for path, f in kept_files.items()}
    )
    assert read == files
    assert skills.look(lambda read: read.find("csv")) is None
    assert skills.look(lambda read: read.read("0" * 64)) is None


def test_a_version_never_comes_back(skills: SqlSharedSkills) -> None:
    seen: list[int] = []
    for _ in range(3):
        skills.change(lambda write: write.put("pdf", ONE, ""), AT)
        seen.append(skills.look(lambda read: read.versions())["pdf"])
        skills.change(lambda write: write.drop("pdf"), AT)
        assert skills.look(lambda read: read.versions()) == {}
    assert seen == sorted(set(seen))


def test_equal_bytes_are_kept_once_and_as_long_as_somebody_needs_them(
    skills: SqlSharedSkills, database: Database
) -> None:
    same = {"a": (b"same", PLAIN), "b": (b"same", PROGRAM)}
    skills.change(lambda write: write.put("one", same, ""), AT)
    skills.change(lambda write: write.put("other", same, ""), AT)
    uploads = SqlUploads(database)
    uploads.put("team", same, "", AT, keep=50)
    assert kept(database) == 1
    skills.change(lambda write: write.put("one", ONE, ""), AT)
    skills.change(lambda write: write.drop("other"), AT)
    assert kept(database) == 2
    uploads.put("team", ONE, "", AT, keep=50)
    assert kept(database) == 1


def test_a_change_that_fails_changes_and_tells_nothing(
    skills: SqlSharedSkills, database: Database, heard: Heard
) -> None:
    skills.change(lambda write: write.put("pdf", ONE, ""), AT)

    def work(write: SharedWriting) -> None:
        write.put("pdf", OTHER, "")
        write.put("csv", OTHER, "")
        write.drop("pdf")
        raise Conflict("csv")

    before = skills.look(lambda read: (read.versions(), read.find("pdf")))
    with pytest.raises(Conflict):
        skills.change(work, AT)
    assert skills.look(lambda read: (read.versions(), read.find("pdf"))) == before
    assert kept(database) == 1
    SqlOutbox(database).note("last", {}, AT)
    heard.wait_for(("skill-changed", "pdf"), ("last", ""))


def test_all_servers_hear_what_one_does(
    skills: SqlSharedSkills, database: Database, heard: Heard
) -> None:
    uploads, tokens = SqlUploads(database), SqlTokens(database)

    def put_both(write: SharedWriting) -> None:
        write.put("pdf", ONE, "")
        write.put("csv", ONE, "")

    skills.change(put_both, AT)
    skills.change(lambda write: write.drop("pdf"), AT)
    skills.change(lambda write: write.versions(), AT)
    uploads.put("a", ONE, "1", AT, keep=1)
    uploads.put("a", ONE, "1", AT, keep=1)
    uploads.put("b", ONE, "1", AT, keep=1)
    tokens.add(StoredToken("1", "laptop", "digest", AT))
    tokens.drop("nobody", AT)
    tokens.drop("laptop", AT)
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


def test_of_many_changes_at_once_each_sees_those_before_it(skills: SqlSharedSkills) -> None:
    taken: list[str] = []

    def take(name: str) -> None:
        def work(write: SharedWriting) -> bool:
            is_free = "pdf" not in write.versions()
            if is_free:
                write.put("pdf", {"SKILL.md": (name.encode(), PLAIN)}, "")
            return is_free

        if skills.change(work, AT):
            taken.append(name)

    crowd = [threading.Thread(target=take, args=[f"{number}"]) for number in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(DEADLINE)
    assert len(taken) == 1


def test_a_token_is_found_by_id_and_by_label_which_is_there_once(database: Database) -> None:
    tokens = SqlTokens(database)
    laptop, phone = StoredToken("1", "laptop", "a", AT), StoredToken("2", "phone", "b", AT)
    tokens.add(laptop)
    tokens.add(phone)
    with pytest.raises(Conflict):
        tokens.add(StoredToken("3", "laptop", "c", AT))
    assert tokens.list() == [laptop, phone]
    assert [tokens.drop("1", AT), tokens.drop("1", AT), tokens.drop("phone", AT)] == [
        True,
        False,
        True,
    ]
    assert tokens.list() == []
