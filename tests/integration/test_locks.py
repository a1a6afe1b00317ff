"""Lock files that several processes change at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.npx_lock import PROJECT_FORMAT, NpxLockPath, read_npx_lock

DEADLINE = 120  # seconds; a process that takes longer hangs
EDIT_LOCK = """
import sys
from skillhall._internal.installer.lock import LockEntry, compute_files_digest, edit_lock
new = LockEntry("a/b", "", "", compute_files_digest(()), ())
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    with edit_lock(sys.argv[1]) as edit:
        edit.entries[f"skills/{sys.argv[2]}-{number}"] = new
"""
EDIT_NPX_LOCK = """
import sys
from datetime import UTC, datetime
from skillhall._internal.installer import npx_lock
from skillhall._internal.installer.npx_lock import NpxEntry, edit_npx_lock
path = npx_lock.NpxLockPath(sys.argv[1], "skills-lock.json", npx_lock.PROJECT_FORMAT)
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    new = NpxEntry(f"skills/{sys.argv[2]}-{number}", "a/b", "github")
    assert edit_npx_lock(path, {new.name: new}, datetime.now(UTC)).is_written
"""


def run_at_once(script: str, folder: Path) -> None:
    """Start eight processes, and let them continue when all are ready."""
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(folder), str(number)],
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        for number in range(8)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            child.communicate(timeout=DEADLINE)
    finally:
        for child in children:
            child.kill()
    assert [child.returncode for child in children] == [0] * 8


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_concurrent_edits_of_the_lock_file_lose_no_entry(tmp_path: Path) -> None:
    run_at_once(EDIT_LOCK, tmp_path)
    expected = {f"skills/{process}-{number}" for process in range(8) for number in range(10)}
    assert set(read_lock(str(tmp_path)).entries) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["skillhall-lock.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_concurrent_edits_of_an_npx_lock_lose_no_entry(tmp_path: Path) -> None:
    run_at_once(EDIT_NPX_LOCK, tmp_path)
    path = NpxLockPath(str(tmp_path), "skills-lock.json", PROJECT_FORMAT)
    assert len(read_npx_lock(path)) == 80
    assert [file.name for file in tmp_path.iterdir()] == ["skills-lock.json"]
