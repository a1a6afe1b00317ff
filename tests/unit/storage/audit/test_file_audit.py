"""Audit rows for changes of files."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.policy.access.actor import Actor, AuditedChange, Via
from skillhall._internal.storage.audit.audit_query import AuditLog
from skillhall._internal.storage.audit.file_audit import FileAudit
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall.errors import DatabaseUnavailable
from tests.support.databases import TIMESTAMP
from tests.support.switchable_database import SwitchableDatabase

CHANGE = AuditedChange(Actor("dev1", "ci", Via.WEB, "::1", "r1"), "skill.edit", {"a": ("", "new")})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    url = build_sqlite_url(str(tmp_path / "test.db"))
    with closing(SwitchableDatabase(url, TIMESTAMP)) as opened:
        yield opened


@pytest.fixture
def audit(database: SwitchableDatabase, tmp_path: Path) -> FileAudit:
    return FileAudit(database, str(tmp_path / "data"), "skills")


class Files:
    """Files whose digests are their contents."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}

    def find(self, subject: str) -> str:
        return self.state.get(subject, "")

    def write(self) -> None:
        self.state["a"] = "new"


def read_subjects(audit: FileAudit) -> list[str]:
    return [row["subject"] for row in AuditLog(audit.database).oldest()]


def test_row_has_the_actor_and_the_digests(audit: FileAudit, tmp_path: Path) -> None:
    files = Files()
    audit.run(CHANGE, files.write, files.find)
    [row] = AuditLog(audit.database).oldest()
    assert (row["actor"], row["token"], row["via"], row["action"]) == (
        *CHANGE.actor[:3],
        "skill.edit",
    )
    assert (row["digest_before"], row["digest_after"]) == ("", "new")
    assert [*(tmp_path / "data" / "audit-journals").iterdir()] == []


def test_nothing_changes_without_a_database(audit: FileAudit, database: SwitchableDatabase) -> None:
    files = Files()
    database.is_down = True
    with pytest.raises(DatabaseUnavailable):
        audit.run(CHANGE, files.write, files.find)
    assert files.state == {}
    database.is_down = False
    audit.recover(files.find)
    assert read_subjects(audit) == []


def test_changes_before_an_error_are_recorded(audit: FileAudit) -> None:
    files, change = Files(), CHANGE._replace(digests={"a": ("", "new"), "b": ("", "new")})

    def fail() -> None:
        files.write()
        raise KeyError

    with pytest.raises(KeyError):
        audit.run(change, fail, files.find)
    assert read_subjects(audit) == ["a"]


def test_change_without_a_row_is_recorded_by_the_next_one(
    audit: FileAudit, database: SwitchableDatabase
) -> None:
    files = Files()

    def write() -> None:
        files.write()
        database.is_down = True
        raise KeyError

    with pytest.raises(KeyError):
        audit.run(CHANGE, write, files.find)
    database.is_down = False
    assert read_subjects(audit) == []
    audit.run(CHANGE._replace(digests={"b": ("", "new")}), lambda: None, files.find)
    assert read_subjects(audit) == ["a", "b"]
    audit.recover(files.find)
    assert read_subjects(audit) == ["a", "b"]


def test_row_that_was_committed_is_not_added_again(audit: FileAudit, tmp_path: Path) -> None:
    files, journal = Files(), tmp_path / "data" / "audit-journals" / "skills.json"
    written: list[bytes] = []

    def write() -> None:
        files.write()
        written.append(journal.read_bytes())

    audit.run(CHANGE, write, files.find)
    journal.write_bytes(written[0])  # as if the process was killed before it was deleted
    audit.recover(files.find)
    assert read_subjects(audit) == ["a"]
    assert not journal.exists()


def test_damaged_journal_is_deleted(audit: FileAudit, tmp_path: Path) -> None:
    journal = tmp_path / "data" / "audit-journals" / "skills.json"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"[")
    audit.recover(Files().find)
    assert not journal.exists()
