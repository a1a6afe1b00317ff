"""Sweeping the data folder: what is needed stays, what is not goes after a while."""

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
from skillhall._internal.skill_store.changes import SkillStoreChanges
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.storage.content_store import ContentStore
from tests.support.projects import ProjectFixture, make_project
from tests.support.skills import make_skill

PDF = ".agents/skills/pdf/SKILL.md"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    made = make_project(tmp_path)
    made.skill("pdf", "Old.\n")
    made.add()
    made.skill("pdf", "New.\n")
    made.add(overwrite=True)
    return made


def data_of(bench: ProjectFixture) -> str:
    return bench.settings.data_directory


def after(seconds: float) -> float:
    return time.time() + seconds + 60


def test_contents_without_a_reference_are_removed_after_the_grace_period(
    bench: ProjectFixture,
) -> None:
    store = ContentStore(data_of(bench))
    orphan = store.put(b"orphan")
    assert clean_up_data(data_of(bench)) == CleanupReport(0, 0)
    assert store.find(orphan) == b"orphan"
    assert clean_up_data(data_of(bench), lambda: after(CONTENT_RETENTION)) == CleanupReport(1, 0)
    assert store.find(orphan) is None


def test_what_a_history_refers_to_can_still_be_rolled_back(bench: ProjectFixture) -> None:
    clean_up_data(data_of(bench), lambda: after(10 * HISTORY_RETENTION))
    roll_back(bench.installer_project, "pdf")
    assert b"Old." in bench.installed_path(PDF).read_bytes()


def test_what_a_lock_refers_to_stays_as_the_base_of_updates(bench: ProjectFixture) -> None:
    for change in bench.installer_project.history.changes()[1:]:
        bench.installer_project.history.delete(change.id)
    clean_up_data(data_of(bench), lambda: after(10 * HISTORY_RETENTION))
    entry = next(iter(bench.installer_project.read_lock().entries.values()))
    assert all(bench.installer_project.content_store.find(file.sha256) for file in entry.files)


def test_the_history_of_a_deleted_project_is_forgotten_with_its_contents(
    bench: ProjectFixture,
) -> None:
    rmtree(bench.project)
    assert clean_up_data(data_of(bench), lambda: after(CONTENT_RETENTION)).histories == 0
    swept = clean_up_data(data_of(bench), lambda: after(HISTORY_RETENTION))
    assert swept.histories == 1
    assert swept.contents > 0
    assert not any(Path(data_of(bench), "contents").glob("*/*"))
    assert not any(Path(data_of(bench), "history").iterdir())


def test_local_skills_keep_their_history_while_their_folder_exists(tmp_path: Path) -> None:
    make_skill(tmp_path / "run/.agents/skills", "pdf")
    changes = SkillStoreChanges(FolderStore(tmp_path / "run"), str(tmp_path / "data"))
    change = changes.delete("pdf")
    assert (
        clean_up_data(str(tmp_path / "data"), lambda: after(2 * HISTORY_RETENTION)).histories == 0
    )
    assert changes.undo(change).ids == ("pdf",)


def test_leftovers_of_killed_processes_are_removed_after_a_day(bench: ProjectFixture) -> None:
    folder = Path(data_of(bench))
    left = [folder / ".skillhall-0123456789abcdef", folder / "history/.skillhall-fedcba9876543210"]
    left[0].write_bytes(b"x")
    left[1].mkdir()
    clean_up_data(data_of(bench))
    assert all(path.exists() for path in left)
    clean_up_data(data_of(bench), lambda: after(UNFINISHED_RETENTION))
    assert not any(path.exists() for path in left)


def test_a_change_sweeps_at_most_once_a_day(bench: ProjectFixture) -> None:
    assert clean_up_if_due(data_of(bench)) is None  # the fixture's changes did it
    assert clean_up_if_due(data_of(bench), lambda: after(CLEANUP_INTERVAL)) == CleanupReport(0, 0)
    assert clean_up_if_due(data_of(bench), lambda: after(CLEANUP_INTERVAL)) is None


def test_nothing_is_removed_while_a_history_cannot_be_read(bench: ProjectFixture) -> None:
    orphan = ContentStore(data_of(bench)).put(b"orphan")
    scope = next(Path(data_of(bench), "history").iterdir())
    (scope / "00000099-01234567.json").mkdir()
    assert clean_up_if_due(data_of(bench), lambda: after(2 * CONTENT_RETENTION)) is None
    assert ContentStore(data_of(bench)).find(orphan) == b"orphan"


def test_a_missing_data_folder_is_not_made(tmp_path: Path) -> None:
    assert clean_up_if_due(str(tmp_path / "none")) is None
    assert not any(tmp_path.iterdir())
