"""Contents and history under faults: killed writers, many writers, and disks without room."""

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
from skillhall._internal.storage.history import Change, Entry, Held, History
folder, number = sys.argv[1], int(sys.argv[2])
DATA = b"text" * 5000
def keep():
    ContentStore(folder).keep(DATA)
def record(name="new"):
    held = {"SKILL.md": Held("0" * 64, False)}
    History(folder, "/home/ada/project").record(Change(name, "add", "", {"x": Entry(None, held)}))
"""
KILLED = """
seen = 0
def count(event, arguments):
    global seen
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.listdir", "os.utime"):
        seen += 1
        if seen == number:
            os._exit(9)
sys.addaudithook(count)
"""


def run(script: str, folder: Path, number: int = 0) -> int:
    command = [sys.executable, "-c", START + script, str(folder), str(number)]
    return subprocess.run(command, check=False, timeout=120).returncode


def make_change(name: str) -> HistoryChange:
    held = {"SKILL.md": HistoryFile("0" * 64, executable=False)}
    return HistoryChange(name, "add", "", {"x": HistoryEntry(None, held)})


@pytest.mark.parametrize("before", [None, DATA, b"damaged"], ids=["new", "there", "damaged"])
def test_a_writer_killed_at_any_step_leaves_the_whole_content_or_none(
    before: bytes | None, tmp_path: Path
) -> None:
    store = ContentStore(str(tmp_path))
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "contents", ignore_errors=True)
        if before is not None:
            store.put(DATA)
            (tmp_path / "contents" / DIGEST[:2] / DIGEST).write_bytes(before)
        ended = run(KILLED + "keep()", tmp_path, step)
        assert store.find(DIGEST) == DATA if ended == 0 else store.find(DIGEST) in (None, DATA)
        if before == DATA:
            assert store.find(DIGEST) == DATA
        store.put(DATA)
        store.sweep({DIGEST}, 0, lambda: 1e12)
        assert [path.name for path in tmp_path.glob("contents/*/*")] == [DIGEST]
        if ended == 0:
            break
    assert step > 4


def test_a_writer_killed_at_any_step_leaves_a_history_that_can_be_read(tmp_path: Path) -> None:
    for number in range(50):
        History(str(tmp_path / "full"), SCOPE).record(make_change(str(number)))
    history = History(str(tmp_path), SCOPE)
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "history", ignore_errors=True)
        shutil.copytree(tmp_path / "full" / "history", tmp_path / "history")
        ended = run(KILLED + "record()", tmp_path, step)
        journal = history.read()
        assert journal.damaged == ()
        assert [change.id for change in journal.changes][:2] in (["49", "48"], ["new", "49"])
        assert len(journal.changes) == 50
        history.record(make_change("later"))
        assert [path.name for path in tmp_path.glob("history/*/.*")] == []
        if ended == 0:
            break
    assert step > 4
    assert [change.id for change in history.changes()][:2] == ["later", "new"]


def test_a_first_change_killed_at_any_step_leaves_nothing_damaged(tmp_path: Path) -> None:
    history = History(str(tmp_path), SCOPE)
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "history", ignore_errors=True)
        ended = run(KILLED + "record()", tmp_path, step)
        assert history.read() in (((), ()), ((make_change("new"),), ()))
        if ended == 0:
            break
    assert history.changes() == (make_change("new"),)


def test_eight_writers_lose_no_change(tmp_path: Path) -> None:
    script = START + "for turn in range(5): record(f'{number}-{turn}'); keep()"
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


@pytest.mark.parametrize("call", ["keep()", "record()"])
@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_disk_without_room_raises_and_leaves_no_file(
    call: str, room: int, tmp_path: Path
) -> None:
    assert run(FULL.format(call=call), tmp_path, room) == 7
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert ContentStore(str(tmp_path)).find(DIGEST) is None
    assert History(str(tmp_path), SCOPE).last() is None
    assert run(call, tmp_path) == 0
