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


def list_files(folder: Path) -> list[Path]:
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
def test_recorded_change_can_be_read(change: HistoryChange, history: History) -> None:
    history.record(change)
    assert history.last() == change
    assert history.read() == Journal((change,), ())


def test_changes_are_sorted_newest_first(history: History) -> None:
    for number in range(12):
        history.record(make_change(number))
    assert [change.id for change in history.changes()] == [f"change-{n}" for n in range(11, -1, -1)]


def test_scope_without_history_is_empty(history: History, tmp_path: Path) -> None:
    history.delete("change-1")
    assert (history.read(), history.last()) == (Journal((), ()), None)
    assert list(tmp_path.iterdir()) == []


def test_each_scope_has_its_own_history(history: History, tmp_path: Path) -> None:
    other = History(str(tmp_path), "/home/ada/caf\udce9")
    history.record(make_change(1))
    other.record(make_change(2))
    assert history.changes() == (make_change(1),)
    assert other.changes() == (make_change(2),)


def test_change_of_another_scope_is_reported_as_damaged(history: History, tmp_path: Path) -> None:
    History(str(tmp_path), "/home/ada/other").record(make_change(1))
    (file,) = list_files(tmp_path)
    history.record(make_change(2))
    (mine,) = (path.parent for path in list_files(tmp_path) if path != file)
    (mine / "00000009-00000000.json").write_bytes(file.read_bytes())
    assert history.read() == Journal((make_change(2),), ("00000009-00000000.json",))


def test_history_is_readable_only_by_its_owner(history: History, tmp_path: Path) -> None:
    history.record(make_change())
    (file,) = list_files(tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


def test_oldest_changes_are_deleted(history: History, tmp_path: Path) -> None:
    for number in range(MAX_CHANGES + 3):
        history.record(make_change(number))
    assert [change.id for change in history.changes()][-1] == "change-3"
    assert len(list_files(tmp_path)) == MAX_CHANGES


def test_deleted_change_is_no_longer_listed(history: History) -> None:
    for number in (1, 2, 3):
        history.record(make_change(number))
    history.delete("change-2")
    history.delete("change-9")
    assert [change.id for change in history.changes()] == ["change-3", "change-1"]
    history.record(make_change(4))
    assert [change.id for change in history.changes()] == ["change-4", "change-3", "change-1"]


def replace_text(old: str, new: str) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: bytes(len(data)),
        lambda data: data[:-10],
        lambda _: b"[" * 100_000,
        lambda _: b"[]",
        lambda _: b"\xff",
        replace_text('"update"', '"destroy"'),
        replace_text('"update"', '["update"]'),
        replace_text("SKILL.md", "../SKILL.md"),
        replace_text("SKILL.md", "/etc/passwd"),
        replace_text("SKILL.md", "./SKILL.md"),
        replace_text(ONE, "../../secret"),
        replace_text("true", "1"),
        replace_text('"format": 1', '"format": 2'),
        replace_text('"2026-01-01T00:00:00Z"', "5"),
        replace_text('"before"', '"befor"'),
        replace_text('"before": {', '"before": [], "x": {'),
    ],
)
def test_damaged_file_is_reported_and_skipped(
    damage: Callable[[bytes], bytes], history: History, tmp_path: Path
) -> None:
    for number in (1, 2):
        history.record(make_change(number))
    last = list_files(tmp_path)[-1]
    last.write_bytes(damage(last.read_bytes()))
    assert history.read() == Journal((make_change(1),), (last.name,))
    assert history.last() == make_change(1)
    history.record(make_change(3))
    assert [change.id for change in history.changes()] == ["change-3", "change-1"]


def test_links_folders_and_huge_files_are_damaged(history: History, tmp_path: Path) -> None:
    history.record(make_change())
    (file,) = list_files(tmp_path)
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
def test_change_that_cannot_be_parsed_is_not_recorded(
    change: HistoryChange, history: History, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="cannot be recorded"):
        history.record(change)
    assert list(tmp_path.iterdir()) == []


def test_referenced_digests_cover_all_scopes(history: History, tmp_path: Path) -> None:
    assert find_referenced_digests(str(tmp_path)) == set()
    three = hashlib.sha256(b"3").hexdigest()
    lock = json.dumps({"files": {"SKILL.md": f"sha256:{three}"}})
    history.record(make_change())
    other = History(str(tmp_path), "/home/ada/other")
    other.record(HistoryChange("a", "add", "", {"x": HistoryEntry(None, {}, None, lock)}))
    (tmp_path / "history" / ".DS_Store").touch()
    assert find_referenced_digests(str(tmp_path)) == {ONE, TWO, three}
    assert make_change().digests() == {ONE, TWO}


def test_referenced_digests_include_damaged_changes(history: History, tmp_path: Path) -> None:
    history.record(make_change())
    (file,) = list_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-3])
    assert find_referenced_digests(str(tmp_path)) == {ONE, TWO}
