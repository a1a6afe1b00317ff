"""Content store and history under faults: killed and concurrent writers, full disks."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History, HistoryChange, HistoryEntry, HistoryFile

DATA = b"text" * 5000
DIGEST = hashlib.sha256(DATA).hexdigest()
SCOPE = "/home/ada/project"

START = """
import os, sys
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import History, HistoryChange, HistoryEntry, HistoryFile
folder, number = sys.argv[1], int(sys.argv[2])
DATA = b"text" * 5000
def put():
    ContentStore(folder).put(DATA)
def record(name="new"):
    files = {"SKILL.md": HistoryFile("0" * 64, False)}
    change = HistoryChange(name, "add", "", {"x": HistoryEntry(None, files)})
    History(folder, "/home/ada/project").record(change)
"""
KILLED = """
steps = 0
def count(event, arguments):
    global steps
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.listdir", "os.utime"):
        steps += 1
        if steps == number:
            os._exit(9)
sys.addaudithook(count)
"""


def run(script: str, folder: Path, number: int = 0) -> int:
    command = [sys.executable, "-c", START + script, str(folder), str(number)]
    return subprocess.run(command, check=False, timeout=120).returncode


def make_change(name: str) -> HistoryChange:
    files = {"SKILL.md": HistoryFile("0" * 64, executable=False)}
    return HistoryChange(name, "add", "", {"x": HistoryEntry(None, files)})


@pytest.mark.parametrize("before", [None, DATA, b"damaged"], ids=["new", "there", "damaged"])
def test_killed_writer_leaves_complete_content_or_none(
    before: bytes | None, tmp_path: Path
) -> None:
    store = ContentStore(str(tmp_path))
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "contents", ignore_errors=True)
        if before is not None:
            store.put(DATA)
            (tmp_path / "contents" / DIGEST[:2] / DIGEST).write_bytes(before)
        returncode = run(KILLED + "put()", tmp_path, step)
        assert store.find(DIGEST) == DATA if returncode == 0 else store.find(DIGEST) in (None, DATA)
        if before == DATA:
            assert store.find(DIGEST) == DATA
        store.put(DATA)
        store.sweep({DIGEST}, 0, lambda: 1e12)
        assert [path.name for path in tmp_path.glob("contents/*/*")] == [DIGEST]
        if returncode == 0:
            break
    assert step > 4


def test_killed_writer_leaves_a_readable_history(tmp_path: Path) -> None:
    for number in range(50):
        History(str(tmp_path / "full"), SCOPE).record(make_change(str(number)))
    history = History(str(tmp_path), SCOPE)
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "history", ignore_errors=True)
        shutil.copytree(tmp_path / "full" / "history", tmp_path / "history")
        returncode = run(KILLED + "record()", tmp_path, step)
        journal = history.read()
        assert journal.damaged == ()
        assert [change.id for change in journal.changes][:2] in (["49", "48"], ["new", "49"])
        assert len(journal.changes) == 50
        history.record(make_change("later"))
        assert [path.name for path in tmp_path.glob("history/*/.*")] == []
        if returncode == 0:
            break
    assert step > 4
    assert [change.id for change in history.changes()][:2] == ["later", "new"]


def test_killed_first_change_leaves_nothing_damaged(tmp_path: Path) -> None:
    history = History(str(tmp_path), SCOPE)
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "history", ignore_errors=True)
        returncode = run(KILLED + "record()", tmp_path, step)
        assert history.read() in (((), ()), ((make_change("new"),), ()))
        if returncode == 0:
            break
    assert history.changes() == (make_change("new"),)


def test_concurrent_writers_lose_no_change(tmp_path: Path) -> None:
    script = START + "for turn in range(5): record(f'{number}-{turn}'); put()"
    commands = [[sys.executable, "-c", script, str(tmp_path), str(n)] for n in range(8)]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(60) for process in processes] == [0] * 8
    journal = History(str(tmp_path), SCOPE).read()
    assert {change.id for change in journal.changes} == {
        f"{n}-{t}" for n in range(8) for t in range(5)
    }
    assert (len(journal.changes), journal.damaged) == (40, ())
    assert ContentStore(str(tmp_path)).find(DIGEST) == DATA


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (number, resource.RLIM_INFINITY))
try:
    {call}
except OSError:
    sys.exit(7)
"""


@pytest.mark.parametrize("call", ["put()", "record()"])
@pytest.mark.parametrize("max_bytes", [0, 1, 100])
def test_full_disk_raises_and_leaves_no_file(call: str, max_bytes: int, tmp_path: Path) -> None:
    assert run(FULL.format(call=call), tmp_path, max_bytes) == 7
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert ContentStore(str(tmp_path)).find(DIGEST) is None
    assert History(str(tmp_path), SCOPE).last() is None
    assert run(call, tmp_path) == 0
