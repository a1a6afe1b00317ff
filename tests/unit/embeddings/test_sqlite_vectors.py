import os
from pathlib import Path

import pytest

from skillhall._internal.embeddings.sqlite_vectors import SqliteVectors
from skillhall.errors import DatabaseUnavailable

A, B = ("a" * 64, "b" * 64)
VECTOR = b"\0\0\0\0\x01\x02"


@pytest.mark.parametrize("keep", [0, 1000])
def test_damaged_file_is_recreated_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, keep: int
) -> None:
    store = SqliteVectors(str(tmp_path))
    store.add("m", {f"{number:064x}": VECTOR * 50 for number in range(500)})
    path = Path(store.path)
    path.write_bytes(path.read_bytes()[:keep] + b"garbage" * 20_000)
    last = 0
    assert store.read("m", last) == []
    store.add("m", {A: VECTOR})
    assert [row.digest for row in store.read("m")] == [A]
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "was damaged" in text]) == 1


def test_positions_of_a_new_file_follow_those_of_the_old_one(tmp_path: Path) -> None:
    store = SqliteVectors(str(tmp_path))
    store.add("m", {A: VECTOR})
    last = store.read("m")[-1].position
    Path(store.path).write_bytes(b"garbage" * 1000)
    store.add("m", {B: VECTOR})
    assert [row.digest for row in store.read("m", last)] == [B]


def test_file_is_private(tmp_path: Path) -> None:
    store = SqliteVectors(str(tmp_path / "embeddings"))
    store.read("m")
    assert Path(store.path).stat().st_mode & 0o777 == 0o600


def test_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    store = SqliteVectors(os.path.join(tmp_path, "file", "folder"))  # noqa: PTH118
    with pytest.raises(DatabaseUnavailable):
        store.read("m")
