"""Many processes on one shelf at once: nothing is lost, and no skill is ever half of two."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.update import UpdateStatus, update
from skillhall._internal.installer.verify import verify
from tests.support.installer_concurrency import SKILLS, VERSIONS, open_project, prepare, run_workers
from tests.support.projects import read_tree
from tests.support.symlink_races import make_memory_folder

WORKERS, ROUNDS = 8, 3
OWN = {f"own-{worker}-{at}" for worker in range(WORKERS) for at in range(ROUNDS)}
PDF = f"{SKILLS}/pdf"
ALIEN = {"source": "acme/alien", "sourceType": "github", "computedHash": "0", "dear": "field"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with make_memory_folder() as folder:
        yield folder


@pytest.mark.parametrize("scope", ["project", "user"])
def test_a_crowd_loses_no_entry_and_tears_no_skill(folder: Path, scope: str) -> None:
    prepare(folder)
    shelf = open_project(folder, scope)
    foreign = Path(shelf.npx_lock_path.folder, shelf.npx_lock_path.name)
    foreign.parent.mkdir(parents=True, exist_ok=True)
    before = {"version": shelf.npx_lock_path.lock_format.version, "skills": {"alien": ALIEN}}
    foreign.write_text(json.dumps(before), encoding="utf-8")
    *workers, reader = run_workers(folder, scope, WORKERS, ROUNDS)
    assert sum(one.get("done", 0) for one in workers) > 0
    assert reader.get("torn", 0) == 0
    told = set(json.loads(foreign.read_text(encoding="utf-8"))["skills"])
    check_locks(shelf, told, scope)
    check_skill(shelf)
    assert not [path for path in Path(shelf.root).rglob(".skillhall-*") if path.suffix != ".json"]


def check_locks(shelf: Project, told: set[str], scope: str) -> None:
    """Everybody's own skill is on disk and in both locks; the other tool has none for a person."""
    known = set(read_lock(shelf.lock_folder, shelf.lock_name).entries)
    assert known - {PDF} == {f"{SKILLS}/{name}" for name in OWN}
    there = {path.name for path in Path(shelf.path(SKILLS)).iterdir()}
    assert there - {"pdf"} == OWN
    assert (PDF in known) == ("pdf" in there)
    assert told - {"pdf"} == ({"alien"} | OWN if scope == "project" else {"alien"})
    assert scope == "user" or ("pdf" in told) == ("pdf" in there)


def check_skill(shelf: Project) -> None:
    """It is gone, or one of its versions; an update makes it the source's."""
    place = Path(shelf.path(PDF))
    if place.exists():
        assert read_tree(place) in VERSIONS
        assert all(one.is_intact for one in verify(shelf))
        assert update(shelf, ["pdf"])[0].status in {UpdateStatus.CURRENT, UpdateStatus.UPDATED}
        assert read_tree(place) == read_tree(
            Path(shelf.settings.working_directory).parent / "source/pdf"
        )
    assert all(one.is_intact for one in verify(shelf))
