from pathlib import Path

import pytest

from skillhall._internal.fs import folder_size
from skillhall._internal.fs.folder_size import FolderSize, measure_folder


def test_sizes_of_all_files_are_added_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"12345")
    (tmp_path / "d").write_bytes(b"123")
    link = tmp_path / "a/link"
    link.symlink_to(tmp_path)
    assert measure_folder(str(tmp_path)) == (8 + link.lstat().st_size, True)


def test_missing_folder_is_empty(tmp_path: Path) -> None:
    assert measure_folder(str(tmp_path / "none")) == FolderSize(0, is_complete=True)


def test_counting_stops_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_size, "MAX_ENTRIES", 2)
    for name in "abc":
        (tmp_path / name).write_bytes(b"1")
    assert measure_folder(str(tmp_path)) == FolderSize(2, is_complete=False)
