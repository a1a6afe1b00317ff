"""Changes are rolled back if the lock file cannot be written."""

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillhall._internal.installer.lock import PROJECT_LOCK, read_lock
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import list_changes, roll_back
from skillhall._internal.installer.update import update
from skillhall._internal.installer.verify import verify
from tests.support.fault_injection import run_faults
from tests.support.projects import ProjectFixture, make_project, read_tree

MAX_FILE_SIZE = 64 * 1024  # bytes; the lock file is larger
PDF, LINK, ANOTHER = ".agents/skills/pdf", ".claude/skills/pdf", ".windsurf/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    project = make_project(tmp_path)
    project.skill("pdf", "Old.\n")
    project.write("pdf/run.sh", "#!/bin/sh\n", executable=True)
    project.add("universal", "claude-code")
    lock = project.project / PROJECT_LOCK
    padded = {**json.loads(lock.read_bytes()), "padding": "x" * 2 * MAX_FILE_SIZE}
    lock.write_bytes(json.dumps(padded).encode())
    return project


@contextmanager
def unwritable_lock() -> Iterator[None]:
    """Limit the size of files, so that the lock file is too large to be written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_SIZE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def change_source(bench: ProjectFixture) -> None:
    bench.skill("pdf", "New.\n")
    bench.write("pdf/new.md", "new")


def overwrite(bench: ProjectFixture) -> None:
    change_source(bench)
    bench.add("universal", "claude-code", overwrite=True)


def overwrite_for_more_agents(bench: ProjectFixture) -> None:
    change_source(bench)
    bench.add("universal", "claude-code", "windsurf", overwrite=True)


def update_skills(bench: ProjectFixture) -> None:
    change_source(bench)
    update(bench.installer_project)


def add_another(bench: ProjectFixture) -> None:
    bench.skill("second")
    bench.add("universal", "claude-code", "windsurf")


CHANGES: list[Callable[[ProjectFixture], object]] = [
    overwrite,
    overwrite_for_more_agents,
    update_skills,
    add_another,
    lambda bench: remove(bench.installer_project, ["pdf"]),
    lambda bench: roll_back(bench.installer_project, "pdf"),
]


@pytest.mark.parametrize(
    "change", CHANGES, ids=["overwrite", "more-agents", "update", "add", "remove", "rollback"]
)
def test_change_is_rolled_back_if_the_lock_file_cannot_be_written(
    bench: ProjectFixture, change: Callable[[ProjectFixture], object]
) -> None:
    before, history = read_tree(bench.project), list_changes(bench.installer_project)
    with unwritable_lock(), pytest.raises(OSError, match="File too large"):
        change(bench)
    assert read_tree(bench.project) == before
    assert bench.installed_path(LINK).is_symlink()
    assert not bench.installed_path(ANOTHER).exists()
    assert list_changes(bench.installer_project) == history
    change(bench)  # works again


class _Consistent:
    """Change that fails at some step: lock file and folder must match."""

    def prepare(self, folder: Path) -> None:
        bench = make_project(folder)
        bench.skill("pdf", "Old.\n")
        bench.add("claude-code")
        change_source(bench)

    def check(self, folder: Path) -> None:
        bench = make_project(folder)
        entries = read_lock(str(bench.project)).entries
        assert (LINK in entries) is bench.installed_path(LINK).is_dir()
        assert all(result.is_intact for result in verify(bench.installer_project))


class Overwrite(_Consistent):
    def run(self, folder: Path) -> None:
        make_project(folder).add("claude-code", overwrite=True)


class Remove(_Consistent):
    def run(self, folder: Path) -> None:
        remove(make_project(folder).installer_project, ["pdf"])


@pytest.mark.parametrize("case", ["Overwrite", "Remove"])
def test_full_disk_at_any_step_keeps_folder_and_lock_file_consistent(case: str) -> None:
    assert run_faults("tests.integration.test_unwritable_locks", case, "full") > 5
