"""Concurrent changes of one project lose no entries and mix no versions."""

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
OWN = {f"own-{worker}-{n}" for worker in range(WORKERS) for n in range(ROUNDS)}
PDF = f"{SKILLS}/pdf"
ALIEN = {"source": "acme/alien", "sourceType": "github", "computedHash": "0", "dear": "field"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with make_memory_folder() as folder:
        yield folder


@pytest.mark.parametrize("scope", ["project", "user"])
def test_concurrent_operations_lose_no_entry_and_mix_no_versions(folder: Path, scope: str) -> None:
    prepare(folder)
    project = open_project(folder, scope)
    npx_lock = Path(project.npx_lock_path.folder, project.npx_lock_path.name)
    npx_lock.parent.mkdir(parents=True, exist_ok=True)
    before = {"version": project.npx_lock_path.lock_format.version, "skills": {"alien": ALIEN}}
    npx_lock.write_text(json.dumps(before), encoding="utf-8")
    *workers, reader = run_workers(folder, scope, WORKERS, ROUNDS)
    assert sum(worker.get("done", 0) for worker in workers) > 0
    assert reader.get("torn", 0) == 0
    npx_names = set(json.loads(npx_lock.read_text(encoding="utf-8"))["skills"])
    check_locks(project, npx_names, scope)
    check_skill(project)
    assert not [path for path in Path(project.root).rglob(".skillhall-*") if path.suffix != ".json"]


def check_locks(project: Project, npx_names: set[str], scope: str) -> None:
    """Each worker's skill is on disk and in both lock files (npx: of a project only)."""
    keys = set(read_lock(project.lock_folder, project.lock_name).entries)
    assert keys - {PDF} == {f"{SKILLS}/{name}" for name in OWN}
    installed = {path.name for path in Path(project.path(SKILLS)).iterdir()}
    assert installed - {"pdf"} == OWN
    assert (PDF in keys) == ("pdf" in installed)
    assert npx_names - {"pdf"} == ({"alien"} | OWN if scope == "project" else {"alien"})
    assert scope == "user" or ("pdf" in npx_names) == ("pdf" in installed)


def check_skill(project: Project) -> None:
    """The skill is removed or complete, and can be updated."""
    folder = Path(project.path(PDF))
    if folder.exists():
        assert read_tree(folder) in VERSIONS
        assert all(result.is_intact for result in verify(project))
        assert update(project, ["pdf"])[0].status in {UpdateStatus.CURRENT, UpdateStatus.UPDATED}
        source = Path(project.settings.working_directory).parent / "source/pdf"
        assert read_tree(folder) == read_tree(source)
    assert all(result.is_intact for result in verify(project))
