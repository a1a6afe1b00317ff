import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillhall._internal.storage.history import (
    MAX_CHANGES,
    History,
    HistoryChange,
    HistoryEntry,
    HistoryFile,
    Journal,
    find_referenced_digests,
)

ONE, TWO = (hashlib.sha256(data).hexdigest() for data in (b"1", b"2"))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(str(tmp_path), "/home/ada/project")


def make_change(number: int = 1) -> HistoryChange:
    entry = HistoryEntry(
        {
            "SKILL.md": HistoryFile(ONE, executable=False),
            "scripts/run.sh": HistoryFile(ONE, executable=True),
        },
        {"SKILL.md": HistoryFile(TWO, executable=False)},
        '{"commit": "a"}',
        '{"commit": "é"}',
    )
    return HistoryChange(f"change-{number}", "update", "2026-01-01T00:00:00Z", {"pdf-tools": entry})


def files_of(folder: Path) -> list[Path]:
    return sorted((folder / "history").glob("*/*"))


@pytest.mark.parametrize(
    "change",
    [
        make_change(),
        HistoryChange(
            "a",
            "add",
            "",
            {"x": HistoryEntry(None, {"SKILL.md": HistoryFile(ONE, executable=False)})},
        ),
        HistoryChange(
            "r",
            "remove",
            "",
            {"x": HistoryEntry({}, None, "null", None), "y": HistoryEntry(None, None)},
        ),
        HistoryChange("\udc80é\n", "add", "\0", {"../é": HistoryEntry(None, {})}),
    ],
)
def test_what_is_recorded_is_read_back(change: HistoryChange, history: History) -> None:
    history.record(change)
    assert history.last() == change
    assert history.read() == Journal((change,), ())


def test_changes_come_newest_first(history: History) -> None:
    for number in range(12):
        history.record(make_change(number))
    assert [change.id for change in history.changes()] == [f"change-{n}" for n in range(11, -1, -1)]


def test_a_scope_without_a_history_is_empty(history: History, tmp_path: Path) -> None:
    history.delete("change-1")
    assert (history.read(), history.last()) == (Journal((), ()), None)
    assert list(tmp_path.iterdir()) == []


def test_each_scope_has_its_own_history(history: History, tmp_path: Path) -> None:
    other = History(str(tmp_path), "/home/ada/caf\udce9")
    history.record(make_change(1))
    other.record(make_change(2))
    assert history.changes() == (make_change(1),)
    assert other.changes() == (make_change(2),)


def test_a_change_of_another_scope_in_the_folder_does_not_count(
    history: History, tmp_path: Path
) -> None:
    History(str(tmp_path), "/home/ada/other").record(make_change(1))
    (file,) = files_of(tmp_path)
    history.record(make_change(2))
    (mine,) = (path.parent for path in files_of(tmp_path) if path != file)
    (mine / "00000009-00000000.json").write_bytes(file.read_bytes())
    assert history.read() == Journal((make_change(2),), ("00000009-00000000.json",))


def test_only_the_person_may_look_into_the_history(history: History, tmp_path: Path) -> None:
    history.record(make_change())
    (file,) = files_of(tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


def test_the_oldest_changes_give_way(history: History, tmp_path: Path) -> None:
    for number in range(MAX_CHANGES + 3):
        history.record(make_change(number))
    assert [change.id for change in history.changes()][-1] == "change-3"
    assert len(files_of(tmp_path)) == MAX_CHANGES


def test_a_dropped_change_is_forgotten_and_the_others_stay(history: History) -> None:
    for number in (1, 2, 3):
        history.record(make_change(number))
    history.delete("change-2")
    history.delete("change-9")
    assert [change.id for change in history.changes()] == ["change-3", "change-1"]
    history.record(make_change(4))
    assert [change.id for change in history.changes()] == ["change-4", "change-3", "change-1"]


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    def damaged(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return damaged


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: bytes(len(data)),
        lambda data: data[:-10],
        lambda _: b"[" * 100_000,
        lambda _: b"[]",
        lambda _: b"\xff",
        replaced('"update"', '"destroy"'),
        replaced('"update"', '["update"]'),
        replaced("SKILL.md", "../SKILL.md"),
        replaced("SKILL.md", "/etc/passwd"),
        replaced("SKILL.md", "./SKILL.md"),
        replaced(ONE, "../../secret"),
        replaced("true", "1"),
        replaced('"format": 1', '"format": 2'),
        replaced('"2026-01-01T00:00:00Z"', "5"),
        replaced('"before"', '"befor"'),
        replaced('"before": {', '"before": [], "x": {'),
    ],
)
def test_a_damaged_file_is_named_and_spoils_nothing(
    damage: Callable[[bytes], bytes], history: History, tmp_path: Path
) -> None:
    for number in (1, 2):
        history.record(make_change(number))
    last = files_of(tmp_path)[-1]
    last.write_bytes(damage(last.read_bytes()))
    assert history.read() == Journal((make_change(1),), (last.name,))
    assert history.last() == make_change(1)
    history.record(make_change(3))
    assert [change.id for change in history.changes()] == ["change-3", "change-1"]


def test_a_link_a_folder_and_a_huge_file_are_damaged_and_strangers_are_not_looked_at(
    history: History, tmp_path: Path
) -> None:
    history.record(make_change())
    (file,) = files_of(tmp_path)
    names = [f"{number:08}-00000000.json" for number in (4, 3, 2)]
    (file.parent / names[0]).symlink_to(file)
    (file.parent / names[1]).mkdir()
    with (file.parent / names[2]).open("wb") as huge:
        huge.truncate(1 << 34)
    (file.parent / "notes.txt").touch()
    assert history.read() == Journal((make_change(),), tuple(names))


@pytest.mark.parametrize(
    "change",
    [
        make_change()._replace(
            entries={"x": HistoryEntry(None, {"../x": HistoryFile(ONE, executable=False)})}
        ),
        make_change()._replace(
            entries={"x": HistoryEntry(None, {"x": HistoryFile("short", executable=False)})}
        ),
        make_change()._replace(
            entries={"x": HistoryEntry(None, {"./x": HistoryFile(ONE, executable=False)})}
        ),
    ],
)
def test_a_change_that_could_not_be_read_back_is_refused(
    change: HistoryChange, history: History, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="cannot be written down"):
        history.record(change)
    assert list(tmp_path.iterdir()) == []


def test_every_digest_that_any_scope_names_is_known(history: History, tmp_path: Path) -> None:
    assert find_referenced_digests(str(tmp_path)) == set()
    three = hashlib.sha256(b"3").hexdigest()
    lock = json.dumps({"files": {"SKILL.md": f"sha256:{three}"}})
    history.record(make_change())
    other = History(str(tmp_path), "/home/ada/other")
    other.record(HistoryChange("a", "add", "", {"x": HistoryEntry(None, {}, None, lock)}))
    (tmp_path / "history" / ".DS_Store").touch()
    assert find_referenced_digests(str(tmp_path)) == {ONE, TWO, three}
    assert make_change().digests() == {ONE, TWO}


def test_damage_keeps_the_contents_that_a_change_named(history: History, tmp_path: Path) -> None:
    history.record(make_change())
    (file,) = files_of(tmp_path)
    file.write_bytes(file.read_bytes()[:-3])
    assert find_referenced_digests(str(tmp_path)) == {ONE, TWO}
