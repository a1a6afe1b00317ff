"""Published folders: comparison, replacement and files of others."""

from pathlib import Path

import pytest

from skillhall._internal.publishing.file_tree import RECORD_FILE, FileTree, plan_folder
from skillhall.errors import ConfigInvalid, UnsafePath

FILES: FileTree = {"a.txt": (b"a", 0o644), "bin/run": (b"r", 0o755)}


def publish(folder: Path, files: FileTree = FILES) -> list[str]:
    plan = plan_folder(str(folder), files, "skillhall.toml")
    plan.apply()
    return [f"{kind} {path}" for path, kind in plan.changes]


def test_new_folder_has_the_files_with_their_modes(tmp_path: Path) -> None:
    out = tmp_path / "dist/out"
    assert publish(out) == [f"added {RECORD_FILE}", "added a.txt", "added bin/run"]
    assert (out / "a.txt").stat().st_mode & 0o777 == 0o644
    assert (out / "bin/run").stat().st_mode & 0o777 == 0o755


def test_second_time_changes_nothing(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    before = (tmp_path / "out").stat()
    assert publish(tmp_path / "out") == []
    assert (tmp_path / "out").stat() == before


def test_removed_and_changed_files_are_named(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    changes = publish(tmp_path / "out", {"a.txt": (b"b", 0o644)})
    assert changes == [f"changed {RECORD_FILE}", "changed a.txt", "removed bin/run"]
    assert not (tmp_path / "out/bin").exists()


def test_edited_output_is_restored(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    (tmp_path / "out/bin/run").chmod(0o644)
    assert publish(tmp_path / "out") == ["changed bin/run"]
    assert (tmp_path / "out/bin/run").stat().st_mode & 0o777 == 0o755


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    (tmp_path / "out/notes").mkdir()
    (tmp_path / "out/notes/mine.txt").write_text("mine")
    with pytest.raises(ConfigInvalid, match=r"notes/mine\.txt"):
        publish(tmp_path / "out", {})
    assert (tmp_path / "out/a.txt").exists()


def test_links_in_the_folder_are_files_of_others(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    (tmp_path / "out/link").symlink_to(tmp_path)
    with pytest.raises(ConfigInvalid, match="link"):
        publish(tmp_path / "out")


@pytest.mark.parametrize("is_link", [True, False])
def test_output_must_be_a_folder(tmp_path: Path, *, is_link: bool) -> None:
    if is_link:
        (tmp_path / "out").symlink_to(tmp_path)
    else:
        (tmp_path / "out").write_text("")
    with pytest.raises(ConfigInvalid, match="is not a folder"):
        publish(tmp_path / "out")


def test_folder_without_a_valid_record_must_be_empty(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    (tmp_path / "out" / RECORD_FILE).write_text("{")
    with pytest.raises(ConfigInvalid, match=r"a\.txt"):
        publish(tmp_path / "out", {"a.txt": (b"other", 0o644)})


@pytest.mark.parametrize("paths", [("../a",), ("a", "A"), ("/a",)])
def test_unsafe_paths_are_rejected(tmp_path: Path, paths: tuple[str, ...]) -> None:
    with pytest.raises(UnsafePath):
        publish(tmp_path / "out", dict.fromkeys(paths, (b"", 0o644)))
