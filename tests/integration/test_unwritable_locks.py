"""A lock that cannot be written: the skills stay as they were before the command."""

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillhall._internal.installer.lock import PROJECT_LOCK, read_lock
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import past_changes, undo
from skillhall._internal.installer.update import update
from skillhall._internal.installer.verify import verify
from tests.support.fault_injection import run_faults
from tests.support.projects import Workbench, tree, workbench

LARGEST = 64 * 1024  # bytes that a file may have while the lock cannot be written
PDF, LINK, ANOTHER = ".agents/skills/pdf", ".claude/skills/pdf", ".windsurf/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = workbench(tmp_path)
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


def renew(bench: Workbench) -> None:
    bench.skill("pdf", "New.\n")
    bench.write("pdf/new.md", "new")


def overwrite(bench: Workbench) -> None:
    renew(bench)
    bench.add("universal", "claude-code", overwrite=True)


def overwrite_for_more_agents(bench: Workbench) -> None:
    renew(bench)
    bench.add("universal", "claude-code", "windsurf", overwrite=True)


def bring_up_to_date(bench: Workbench) -> None:
    renew(bench)
    update(bench.shelf)


def add_another(bench: Workbench) -> None:
    bench.skill("second")
    bench.add("universal", "claude-code", "windsurf")


CHANGES: list[Callable[[Workbench], object]] = [
    overwrite,
    overwrite_for_more_agents,
    bring_up_to_date,
    add_another,
    lambda bench: remove(bench.shelf, ["pdf"]),
    lambda bench: undo(bench.shelf, "pdf"),
]


@pytest.mark.parametrize(
    "change", CHANGES, ids=["overwrite", "more-agents", "update", "add", "remove", "rollback"]
)
def test_a_change_without_a_lock_leaves_everything_as_it_was(
    bench: Workbench, change: Callable[[Workbench], object]
) -> None:
    before, past = tree(bench.project), past_changes(bench.shelf)
    with unwritable_lock(), pytest.raises(OSError, match="File too large"):
        change(bench)
    assert tree(bench.project) == before
    assert bench.installed(LINK).is_symlink()
    assert not bench.installed(ANOTHER).exists()
    assert past_changes(bench.shelf) == past
    change(bench)  # the next attempt finds nothing in its way


class _Consistent:
    """A change that fails at some step: the lock says what the folder contains."""

    def prepare(self, folder: Path) -> None:
        bench = workbench(folder)
        bench.skill("pdf", "Old.\n")
        bench.add("claude-code")
        renew(bench)

    def check(self, folder: Path) -> None:
        bench = workbench(folder)
        entries = read_lock(str(bench.project)).entries
        assert (LINK in entries) is bench.installed(LINK).is_dir()
        assert all(one.is_right for one in verify(bench.shelf))


class Overwrite(_Consistent):
    def work(self, folder: Path) -> None:
        workbench(folder).add("claude-code", overwrite=True)


class Remove(_Consistent):
    def work(self, folder: Path) -> None:
        remove(workbench(folder).shelf, ["pdf"])


@pytest.mark.parametrize("case", ["Overwrite", "Remove"])
def test_a_disk_that_is_full_at_any_step_leaves_folder_and_lock_in_agreement(case: str) -> None:
    assert run_faults("tests.integration.test_unwritable_locks", case, "full") > 5
