"""Cleanup of the data folder."""

import time
from pathlib import Path
from shutil import rmtree

import pytest

from skillhall._internal.installer.data_cleanup import (
    CLEANUP_INTERVAL,
    CONTENT_RETENTION,
    HISTORY_RETENTION,
    UNFINISHED_RETENTION,
    CleanupReport,
    clean_up_data,
    clean_up_if_due,
)
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall._internal.storage.content_store import ContentStore
from tests.support.actors import ACTOR
from tests.support.projects import ProjectFixture, make_project
from tests.support.skills import make_skill

PDF = ".agents/skills/pdf/SKILL.md"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    bench = make_project(tmp_path)
    bench.skill("pdf", "Old.\n")
    bench.add()
    bench.skill("pdf", "New.\n")
    bench.add(overwrite=True)
    return bench


def data_of(bench: ProjectFixture) -> str:
    return bench.settings.data_directory


def after(seconds: float) -> float:
    return time.time() + seconds + 60


def test_unreferenced_contents_are_removed_after_the_retention_period(
    bench: ProjectFixture,
) -> None:
    store = ContentStore(data_of(bench))
    orphan = store.put(b"orphan")
    assert clean_up_data(data_of(bench)) == CleanupReport(0, 0)
    assert store.find(orphan) == b"orphan"
    assert clean_up_data(data_of(bench), lambda: after(CONTENT_RETENTION)) == CleanupReport(1, 0)
    assert store.find(orphan) is None


def test_contents_in_a_history_can_still_be_rolled_back(bench: ProjectFixture) -> None:
    clean_up_data(data_of(bench), lambda: after(10 * HISTORY_RETENTION))
    roll_back(bench.installer_project, "pdf")
    assert b"Old." in bench.installed_path(PDF).read_bytes()


def test_contents_in_a_lock_file_are_kept_for_merges(bench: ProjectFixture) -> None:
    for change in bench.installer_project.history.changes()[1:]:
        bench.installer_project.history.delete(change.id)
    clean_up_data(data_of(bench), lambda: after(10 * HISTORY_RETENTION))
    entry = next(iter(bench.installer_project.read_lock().entries.values()))
    assert all(bench.installer_project.content_store.find(file.sha256) for file in entry.files)


def test_history_of_a_deleted_project_is_removed_with_its_contents(
    bench: ProjectFixture,
) -> None:
    rmtree(bench.project)
    assert clean_up_data(data_of(bench), lambda: after(CONTENT_RETENTION)).histories == 0
    report = clean_up_data(data_of(bench), lambda: after(HISTORY_RETENTION))
    assert report.histories == 1
    assert report.contents > 0
    assert not any(Path(data_of(bench), "contents").glob("*/*"))
    assert not any(Path(data_of(bench), "history").iterdir())


def test_skill_store_keeps_its_history_while_its_folder_exists(tmp_path: Path) -> None:
    make_skill(tmp_path / "run/.agents/skills", "pdf")
    changes = SkillStoreChanges(FolderStore(tmp_path / "run"), str(tmp_path / "data"), actor=ACTOR)
    change = changes.delete("pdf")
    report = clean_up_data(str(tmp_path / "data"), lambda: after(2 * HISTORY_RETENTION))
    assert report.histories == 0
    assert [*changes.undo(change).entries] == ["pdf"]


def test_unfinished_files_are_removed_after_a_day(bench: ProjectFixture) -> None:
    folder = Path(data_of(bench))
    paths = [folder / ".skillhall-0123456789abcdef", folder / "history/.skillhall-fedcba9876543210"]
    paths[0].write_bytes(b"x")
    paths[1].mkdir()
    clean_up_data(data_of(bench))
    assert all(path.exists() for path in paths)
    clean_up_data(data_of(bench), lambda: after(UNFINISHED_RETENTION))
    assert not any(path.exists() for path in paths)


def test_cleanup_runs_at_most_once_a_day(bench: ProjectFixture) -> None:
    assert clean_up_if_due(data_of(bench)) is None  # the changes of the fixture ran it
    assert clean_up_if_due(data_of(bench), lambda: after(CLEANUP_INTERVAL)) == CleanupReport(0, 0)
    assert clean_up_if_due(data_of(bench), lambda: after(CLEANUP_INTERVAL)) is None


def test_unreadable_history_prevents_cleanup(bench: ProjectFixture) -> None:
    orphan = ContentStore(data_of(bench)).put(b"orphan")
    scope = next(Path(data_of(bench), "history").iterdir())
    (scope / "00000099-01234567.json").mkdir()
    assert clean_up_if_due(data_of(bench), lambda: after(2 * CONTENT_RETENTION)) is None
    assert ContentStore(data_of(bench)).find(orphan) == b"orphan"


def test_missing_data_folder_is_not_created(tmp_path: Path) -> None:
    assert clean_up_if_due(str(tmp_path / "none")) is None
    assert not any(tmp_path.iterdir())
