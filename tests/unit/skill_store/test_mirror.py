"""The mirror of shared skills: right whatever happened to it, there while the database is not."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.sources.opener import build_single_bundle
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import shared_skills
from skillhall.errors import DatabaseUnavailable
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until
from tests.support.skills import make_skill_md
from tests.support.switchable_database import SwitchableDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def put(database: Database, name: str, body: str = "Read.") -> None:
    files = {"SKILL.md": (make_skill_md(name, "Reads.", body), 0o644), "run.sh": (b"#!", 0o755)}
    SqlSharedSkillTable(database).write(lambda write: write.put(name, files, ""), TIMESTAMP)


SOON = 0.01  # seconds


def refreshed(database: SwitchableDatabase, folder: Path) -> str:
    """The revision after a server was started and ended."""
    with closing(SkillMirror(SqlSharedSkillTable(database), str(folder))) as mirror:
        mirror.refresh()
        return mirror.revision


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in found
    }


def lose_a_file(folder: Path) -> None:
    (folder / "pdf" / "run.sh").unlink()


def cut_a_file(folder: Path) -> None:
    (folder / "pdf" / "SKILL.md").write_bytes(b"")


def add_a_file(folder: Path) -> None:
    (folder / "pdf" / "more").write_bytes(b"x")


def lose_a_mode(folder: Path) -> None:
    (folder / "pdf" / "run.sh").chmod(0o644)


def put_a_file_there(folder: Path) -> None:
    for file in (folder / "pdf").iterdir():
        file.unlink()
    (folder / "pdf").rmdir()
    (folder / "pdf").write_bytes(b"x")


def leave_what_a_killed_process_leaves(folder: Path) -> None:
    (folder / ".skillhall-0123456789abcdef").mkdir()
    (folder / "pdf").rename(folder / ".skillhall-old-pdf")


def keep_what_is_gone(folder: Path) -> None:
    (folder / "gone").mkdir()
    (folder / "gone" / "SKILL.md").write_bytes(make_skill_md("gone"))


DAMAGES = [
    lose_a_file,
    cut_a_file,
    add_a_file,
    lose_a_mode,
    put_a_file_there,
    leave_what_a_killed_process_leaves,
    keep_what_is_gone,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_stands_there_at_the_start_it_is_right_then(
    damage: Callable[[Path], None], database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf")
    put(database, "csv")
    revision = refreshed(database, folder)
    whole = tree(folder)
    damage(folder)
    assert tree(folder) != whole or (folder / ".skillhall-0123456789abcdef").exists()
    assert refreshed(database, folder) == revision
    assert tree(folder) == whole
    assert sorted(path.name for path in folder.iterdir()) == ["csv", "pdf"]


def test_what_is_right_already_is_not_written_again(
    database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf")
    put(database, "csv")
    refreshed(database, folder)
    before = {name: (folder / name).stat().st_ino for name in ("pdf", "csv")}
    put(database, "csv", "Other.")
    refreshed(database, folder)
    assert (folder / "pdf").stat().st_ino == before["pdf"]
    assert (folder / "csv").stat().st_ino != before["csv"]


def test_the_same_skills_have_the_same_revision_everywhere(
    database: SwitchableDatabase, tmp_path: Path
) -> None:
    put(database, "pdf")
    one = refreshed(database, tmp_path / "one")
    assert refreshed(database, tmp_path / "other") == one
    put(database, "pdf", "Other.")
    assert refreshed(database, tmp_path / "one") != one


def test_a_skill_that_this_disk_cannot_hold_keeps_no_other_away(
    database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf")
    refreshed(database, folder)
    files = {"SKILL.md": (make_skill_md("pdf"), 0o644), "x" * 300: (b"x", 0o644)}
    SqlSharedSkillTable(database).write(lambda write: write.put("pdf", files, ""), TIMESTAMP)
    put(database, "csv")
    put(database, "zip")
    refreshed(database, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["csv", "pdf", "zip"]
    assert b"Read." in (folder / "pdf" / "SKILL.md").read_bytes()  # the last one that it could


def test_a_database_that_was_restored_is_compared_byte_by_byte(
    database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf", "Of now.")
    store = SqlSharedSkillTable(database)
    version = store.read(lambda read: read.versions())["pdf"]
    with closing(SkillMirror(store, str(folder))) as mirror:
        mirror.refresh()
        before = mirror.revision
        put(database, "pdf", "Of another history.")
        changed = update(shared_skills).values(version=version)
        database.write(lambda connection: connection.execute(changed))
        mirror.handle_events([Event("database-restored", "", "", 0, {}, TIMESTAMP)])
        wait_until(lambda: mirror.revision != before)
    assert b"Of another history." in (folder / "pdf" / "SKILL.md").read_bytes()


def test_while_the_database_is_away_skills_are_read_and_changes_refused(
    database: SwitchableDatabase, folder: Path, tmp_path: Path
) -> None:
    put(database, "pdf")
    refreshed(database, folder)
    database.is_down = True
    store = SqlSharedSkillTable(database)
    with closing(SkillMirror(store, str(folder), retry_interval=SOON)) as mirror:
        skills = DatabaseStore(str(tmp_path), store, mirror)
        assert [skill.id for skill in skills.catalog()] == ["pdf"]
        with pytest.raises(DatabaseUnavailable):
            skills.add("csv", "csv", "Reads.")
        with pytest.raises(DatabaseUnavailable):
            skills.import_(build_single_bundle({"SKILL.md": make_skill_md("csv")}, "csv"))
        with pytest.raises(DatabaseUnavailable):
            skills.delete("pdf")
        assert [skill.id for skill in skills.catalog()] == ["pdf"]
        before = skills.revision()
        with closing(Database(build_sqlite_url(database.path), TIMESTAMP)) as of_another_server:
            put(of_another_server, "csv")
        database.is_down = False
        wait_until(lambda: skills.revision() != before)
        assert [skill.id for skill in skills.catalog()] == ["csv", "pdf"]


def test_a_mirror_that_is_removed_comes_back(database: SwitchableDatabase, folder: Path) -> None:
    put(database, "pdf")
    with closing(SkillMirror(SqlSharedSkillTable(database), str(folder))) as mirror:
        mirror.refresh()
        whole = tree(folder)
        folder.rename(folder.with_name("elsewhere"))
        wait_until(lambda: mirror.revision and tree(folder) == whole)


def test_a_skill_that_cannot_be_written_here_is_kept_all_the_same(
    database: SwitchableDatabase, folder: Path, tmp_path: Path
) -> None:
    store = SqlSharedSkillTable(database)
    folder.write_bytes(b"no folder")
    with closing(SkillMirror(store, str(folder), retry_interval=SOON)) as mirror:
        skills = DatabaseStore(str(tmp_path), store, mirror)
        assert skills.add("pdf", "pdf", "Reads.").id == "pdf"
        assert [*skills.catalog()] == []
        folder.unlink()
        wait_until(lambda: [skill.id for skill in skills.catalog()] == ["pdf"])
