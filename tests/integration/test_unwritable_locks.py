"""A lock that cannot be written: the skills stay as they were before the command."""

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

LARGEST = 64 * 1024  # bytes that a file may have while the lock cannot be written
PDF, LINK, ANOTHER = ".agents/skills/pdf", ".claude/skills/pdf", ".windsurf/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    made = make_project(tmp_path)
    made.skill("pdf", "Old.\n")
    made.write("pdf/run.sh", "#!/bin/sh\n", executable=True)
    made.add("universal", "claude-code")
    lock = made.project / PROJECT_LOCK
    padded = {**json.loads(lock.read_bytes()), "padding": "x" * 2 * LARGEST}
    lock.write_bytes(json.dumps(padded).encode())
    return made


@contextmanager
def unwritable_lock() -> Iterator[None]:
    """The system refuses to write files as large as the lock is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def renew(bench: ProjectFixture) -> None:
    bench.skill("pdf", "New.\n")
    bench.write("pdf/new.md", "new")


def overwrite(bench: ProjectFixture) -> None:
    renew(bench)
    bench.add("universal", "claude-code", overwrite=True)


def overwrite_for_more_agents(bench: ProjectFixture) -> None:
    renew(bench)
    bench.add("universal", "claude-code", "windsurf", overwrite=True)


def bring_up_to_date(bench: ProjectFixture) -> None:
    renew(bench)
    update(bench.installer_project)


def add_another(bench: ProjectFixture) -> None:
    bench.skill("second")
    bench.add("universal", "claude-code", "windsurf")


CHANGES: list[Callable[[ProjectFixture], object]] = [
    overwrite,
    overwrite_for_more_agents,
    bring_up_to_date,
    add_another,
    lambda bench: remove(bench.installer_project, ["pdf"]),
    lambda bench: roll_back(bench.installer_project, "pdf"),
]


@pytest.mark.parametrize(
    "change", CHANGES, ids=["overwrite", "more-agents", "update", "add", "remove", "rollback"]
)
def test_a_change_without_a_lock_leaves_everything_as_it_was(
    bench: ProjectFixture, change: Callable[[ProjectFixture], object]
) -> None:
    before, past = read_tree(bench.project), list_changes(bench.installer_project)
    with unwritable_lock(), pytest.raises(OSError, match="File too large"):
        change(bench)
    assert read_tree(bench.project) == before
    assert bench.installed_path(LINK).is_symlink()
    assert not bench.installed_path(ANOTHER).exists()
    assert list_changes(bench.installer_project) == past
    change(bench)  # the next attempt finds nothing in its way


class _Consistent:
    """A change that fails at some step: the lock says what the folder contains."""

    def prepare(self, folder: Path) -> None:
        bench = make_project(folder)
        bench.skill("pdf", "Old.\n")
        bench.add("claude-code")
        renew(bench)

    def check(self, folder: Path) -> None:
        bench = make_project(folder)
        entries = read_lock(str(bench.project)).entries
        assert (LINK in entries) is bench.installed_path(LINK).is_dir()
        assert all(one.is_intact for one in verify(bench.installer_project))


class Overwrite(_Consistent):
    def run(self, folder: Path) -> None:
        make_project(folder).add("claude-code", overwrite=True)


class Remove(_Consistent):
    def run(self, folder: Path) -> None:
        remove(make_project(folder).installer_project, ["pdf"])


@pytest.mark.parametrize("case", ["Overwrite", "Remove"])
def test_a_disk_that_is_full_at_any_step_leaves_folder_and_lock_in_agreement(case: str) -> None:
    assert run_faults("tests.integration.test_unwritable_locks", case, "full") > 5
