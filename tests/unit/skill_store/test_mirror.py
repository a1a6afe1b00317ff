"""Mirror of a shared database: repairs itself, and survives outages."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.storage.records import Event
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import shared_skills
from skillhall.errors import DatabaseUnavailable
from tests.support.actors import ACTOR
from tests.support.bundles import build_single_bundle
from tests.support.databases import TIMESTAMP
from tests.support.replicas import wait_until
from tests.support.skills import make_skill_md
from tests.support.switchable_database import SwitchableDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SwitchableDatabase]:
    with closing(
        SwitchableDatabase(build_sqlite_url(str(tmp_path / "test.db")), TIMESTAMP)
    ) as database:
        yield database


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def put(database: Database, name: str, body: str = "Read.") -> None:
    files = {"SKILL.md": (make_skill_md(name, "Reads.", body), 0o644), "run.sh": (b"#!", 0o755)}
    SqlSharedSkillTable(database).write(
        lambda write: write.put(name, files, ""), TIMESTAMP, actor=ACTOR
    )


SOON = 0.01  # seconds


def refresh(database: SwitchableDatabase, folder: Path) -> str:
    """Refresh with a new mirror and return its revision."""
    with closing(SkillMirror(SqlSharedSkillTable(database), str(folder))) as mirror:
        mirror.refresh()
        return mirror.revision


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in paths
    }


def delete_file(folder: Path) -> None:
    (folder / "pdf" / "run.sh").unlink()


def truncate_file(folder: Path) -> None:
    (folder / "pdf" / "SKILL.md").write_bytes(b"")


def add_file(folder: Path) -> None:
    (folder / "pdf" / "more").write_bytes(b"x")


def change_mode(folder: Path) -> None:
    (folder / "pdf" / "run.sh").chmod(0o644)


def replace_folder_by_file(folder: Path) -> None:
    for file in (folder / "pdf").iterdir():
        file.unlink()
    (folder / "pdf").rmdir()
    (folder / "pdf").write_bytes(b"x")


def leave_staged_folders(folder: Path) -> None:
    (folder / ".skillhall-0123456789abcdef").mkdir()
    (folder / "pdf").rename(folder / ".skillhall-old-pdf")


def add_deleted_skill(folder: Path) -> None:
    (folder / "gone").mkdir()
    (folder / "gone" / "SKILL.md").write_bytes(make_skill_md("gone"))


DAMAGES = [
    delete_file,
    truncate_file,
    add_file,
    change_mode,
    replace_folder_by_file,
    leave_staged_folders,
    add_deleted_skill,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_refresh_repairs_any_damage(
    damage: Callable[[Path], None], database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf")
    put(database, "csv")
    revision = refresh(database, folder)
    expected = tree(folder)
    damage(folder)
    assert tree(folder) != expected or (folder / ".skillhall-0123456789abcdef").exists()
    assert refresh(database, folder) == revision
    assert tree(folder) == expected
    assert sorted(path.name for path in folder.iterdir()) == ["csv", "pdf"]


def test_refresh_writes_only_changed_skills(database: SwitchableDatabase, folder: Path) -> None:
    put(database, "pdf")
    put(database, "csv")
    refresh(database, folder)
    before = {name: (folder / name).stat().st_ino for name in ("pdf", "csv")}
    put(database, "csv", "Other.")
    refresh(database, folder)
    assert (folder / "pdf").stat().st_ino == before["pdf"]
    assert (folder / "csv").stat().st_ino != before["csv"]


def test_equal_skills_have_equal_revisions_on_all_machines(
    database: SwitchableDatabase, tmp_path: Path
) -> None:
    put(database, "pdf")
    first = refresh(database, tmp_path / "first")
    assert refresh(database, tmp_path / "other") == first
    put(database, "pdf", "Other.")
    assert refresh(database, tmp_path / "first") != first


def test_unwritable_skill_does_not_block_others(database: SwitchableDatabase, folder: Path) -> None:
    put(database, "pdf")
    refresh(database, folder)
    files = {"SKILL.md": (make_skill_md("pdf"), 0o644), "x" * 300: (b"x", 0o644)}
    SqlSharedSkillTable(database).write(
        lambda write: write.put("pdf", files, ""), TIMESTAMP, actor=ACTOR
    )
    put(database, "csv")
    put(database, "zip")
    refresh(database, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["csv", "pdf", "zip"]
    # The old version remains.
    assert b"Read." in (folder / "pdf" / "SKILL.md").read_bytes()


def test_restored_database_is_compared_by_content(
    database: SwitchableDatabase, folder: Path
) -> None:
    put(database, "pdf", "Of now.")
    store = SqlSharedSkillTable(database)
    version = store.read(lambda read: read.versions())["pdf"]
    with closing(SkillMirror(store, str(folder))) as mirror:
        mirror.refresh()
        before = mirror.revision
        put(database, "pdf", "Of another history.")
        statement = update(shared_skills).values(version=version)
        database.write(lambda connection: connection.execute(statement))
        mirror.handle_events([Event("database-restored", "", "", 0, {}, TIMESTAMP)])
        wait_until(lambda: mirror.revision != before)
    assert b"Of another history." in (folder / "pdf" / "SKILL.md").read_bytes()


def test_outage_keeps_skills_readable_and_rejects_changes(
    database: SwitchableDatabase, folder: Path, tmp_path: Path
) -> None:
    put(database, "pdf")
    refresh(database, folder)
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
        with closing(Database(build_sqlite_url(database.path), TIMESTAMP)) as other_database:
            put(other_database, "csv")
        database.is_down = False
        wait_until(lambda: skills.revision() != before)
        assert [skill.id for skill in skills.catalog()] == ["csv", "pdf"]


def test_deleted_mirror_is_restored(database: SwitchableDatabase, folder: Path) -> None:
    put(database, "pdf")
    with closing(SkillMirror(SqlSharedSkillTable(database), str(folder))) as mirror:
        mirror.refresh()
        expected = tree(folder)
        folder.rename(folder.with_name("elsewhere"))
        wait_until(lambda: mirror.revision and tree(folder) == expected)


def test_skill_is_stored_even_if_the_mirror_cannot_be_written(
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
