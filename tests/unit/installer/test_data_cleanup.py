"""Sweeping the data folder: what is needed stays, what is not goes after a while."""

import time
from pathlib import Path
from shutil import rmtree

import pytest

from skillhall._internal.installer.data_cleanup import (
    EVERY,
    FORGOTTEN,
    GRACE,
    UNFINISHED,
    Swept,
    sweep_data,
    sweep_when_due,
)
from skillhall._internal.installer.rollback import undo
from skillhall._internal.skill_store.changes import LocalChanges
from skillhall._internal.skill_store.folder_store import LocalSkills
from skillhall._internal.storage.content_store import ContentStore
from tests.support.projects import Workbench, workbench
from tests.support.skills import make_skill

PDF = ".agents/skills/pdf/SKILL.md"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = workbench(tmp_path)
    made.skill("pdf", "Old.\n")
    made.add()
    made.skill("pdf", "New.\n")
    made.add(overwrite=True)
    return made


def data_of(bench: Workbench) -> str:
    return bench.settings.data_directory


def after(seconds: float) -> float:
    return time.time() + seconds + 60


def test_contents_without_a_reference_are_removed_after_the_grace_period(bench: Workbench) -> None:
    store = ContentStore(data_of(bench))
    orphan = store.keep(b"orphan")
    assert sweep_data(data_of(bench)) == Swept(0, 0)
    assert store.find(orphan) == b"orphan"
    assert sweep_data(data_of(bench), lambda: after(GRACE)) == Swept(1, 0)
    assert store.find(orphan) is None


def test_what_a_history_refers_to_can_still_be_rolled_back(bench: Workbench) -> None:
    sweep_data(data_of(bench), lambda: after(10 * FORGOTTEN))
    undo(bench.shelf, "pdf")
    assert b"Old." in bench.installed(PDF).read_bytes()


def test_what_a_lock_refers_to_stays_as_the_base_of_updates(bench: Workbench) -> None:
    for change in bench.shelf.history.changes()[1:]:
        bench.shelf.history.drop(change.id)
    sweep_data(data_of(bench), lambda: after(10 * FORGOTTEN))
    entry = next(iter(bench.shelf.lock().entries.values()))
    assert all(bench.shelf.contents.find(file.sha256) for file in entry.files)


def test_the_history_of_a_deleted_project_is_forgotten_with_its_contents(bench: Workbench) -> None:
    rmtree(bench.project)
    assert sweep_data(data_of(bench), lambda: after(GRACE)).histories == 0
    swept = sweep_data(data_of(bench), lambda: after(FORGOTTEN))
    assert swept.histories == 1
    assert swept.contents > 0
    assert not any(Path(data_of(bench), "contents").glob("*/*"))
    assert not any(Path(data_of(bench), "history").iterdir())


def test_local_skills_keep_their_history_while_their_folder_exists(tmp_path: Path) -> None:
    make_skill(tmp_path / "run/.agents/skills", "pdf")
    changes = LocalChanges(LocalSkills(tmp_path / "run"), str(tmp_path / "data"))
    change = changes.delete("pdf")
    assert sweep_data(str(tmp_path / "data"), lambda: after(2 * FORGOTTEN)).histories == 0
    assert changes.undo(change).ids == ("pdf",)


def test_leftovers_of_killed_processes_are_removed_after_a_day(bench: Workbench) -> None:
    folder = Path(data_of(bench))
    left = [folder / ".skillhall-0123456789abcdef", folder / "history/.skillhall-fedcba9876543210"]
    left[0].write_bytes(b"x")
    left[1].mkdir()
    sweep_data(data_of(bench))
    assert all(path.exists() for path in left)
    sweep_data(data_of(bench), lambda: after(UNFINISHED))
    assert not any(path.exists() for path in left)


def test_a_change_sweeps_at_most_once_a_day(bench: Workbench) -> None:
    assert sweep_when_due(data_of(bench)) is None  # the fixture's changes did it
    assert sweep_when_due(data_of(bench), lambda: after(EVERY)) == Swept(0, 0)
    assert sweep_when_due(data_of(bench), lambda: after(EVERY)) is None


def test_nothing_is_removed_while_a_history_cannot_be_read(bench: Workbench) -> None:
    orphan = ContentStore(data_of(bench)).keep(b"orphan")
    scope = next(Path(data_of(bench), "history").iterdir())
    (scope / "00000099-01234567.json").mkdir()
    assert sweep_when_due(data_of(bench), lambda: after(2 * GRACE)) is None
    assert ContentStore(data_of(bench)).find(orphan) == b"orphan"


def test_a_missing_data_folder_is_not_made(tmp_path: Path) -> None:
    assert sweep_when_due(str(tmp_path / "none")) is None
    assert not any(tmp_path.iterdir())
