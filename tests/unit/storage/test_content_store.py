import hashlib
import os
from pathlib import Path

import pytest

from skillhall._internal.storage.content_store import ContentStore

DIGEST = hashlib.sha256(b"text").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(str(tmp_path))


def file_of(folder: Path, digest: str) -> Path:
    return folder / "contents" / digest[:2] / digest


@pytest.mark.parametrize("data", [b"", b"text", bytes(range(256)) * 5000])
def test_what_is_kept_is_found_by_its_digest(data: bytes, store: ContentStore) -> None:
    digest = store.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert store.find(digest) == data


def test_only_the_person_may_look_into_the_store(store: ContentStore, tmp_path: Path) -> None:
    file = file_of(tmp_path, store.put(b"text"))
    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_keeping_twice_writes_once_and_makes_it_young(store: ContentStore, tmp_path: Path) -> None:
    file = file_of(tmp_path, store.put(b"text"))
    before = file.stat()
    os.utime(file, (0, 0))
    store.put(b"text")
    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_mtime >= before.st_mtime
    assert [path.name for path in file.parent.iterdir()] == [DIGEST]


@pytest.mark.parametrize(
    "digest", ["", "0" * 64, "../../secret", f"sha256:{DIGEST}", DIGEST.upper(), f"{DIGEST}\n"]
)
def test_what_was_never_kept_is_not_found(digest: str, store: ContentStore) -> None:
    store.put(b"text")
    assert store.find(digest) is None


@pytest.mark.parametrize("damage", [b"", b"texT", b"text and more"])
def test_a_damaged_content_counts_as_absent_until_it_is_kept_again(
    damage: bytes, store: ContentStore, tmp_path: Path
) -> None:
    file = file_of(tmp_path, store.put(b"text"))
    file.write_bytes(damage)
    assert store.find(DIGEST) is None
    assert not file.exists()
    file.write_bytes(damage)
    assert store.find(store.put(b"text")) == b"text"


def test_a_link_in_the_store_is_not_followed(store: ContentStore, tmp_path: Path) -> None:
    file = file_of(tmp_path, store.put(b"text"))
    (tmp_path / "outside").write_bytes(b"text")
    file.unlink()
    file.symlink_to(tmp_path / "outside")
    assert store.find(DIGEST) is None
    with pytest.raises(FileExistsError):
        store.put(b"text")
    assert (tmp_path / "outside").read_bytes() == b"text"


def test_a_folder_that_is_a_link_is_not_written_through(
    store: ContentStore, tmp_path: Path
) -> None:
    (tmp_path / "contents").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "contents" / DIGEST[:2]).symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"directory|link"):
        store.put(b"text")
    assert list((tmp_path / "outside").iterdir()) == []
    assert store.find(DIGEST) is None


def test_a_store_that_cannot_be_made_raises_from_keep_alone(tmp_path: Path) -> None:
    (tmp_path / "contents").write_bytes(b"not a folder")
    store = ContentStore(str(tmp_path))
    with pytest.raises(OSError, match="exists"):
        store.put(b"text")
    assert store.find(DIGEST) is None
    assert store.sweep([], 0, lambda: 1e12) == 0


def test_a_store_that_was_never_used_is_empty(store: ContentStore, tmp_path: Path) -> None:
    assert store.find(DIGEST) is None
    assert store.sweep([], 0, lambda: 1e12) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_removes_what_nobody_refers_to(store: ContentStore) -> None:
    kept, dropped = store.put(b"kept"), store.put(b"dropped")
    assert store.sweep({kept}, 60, lambda: 1e12) == 1
    assert (store.find(kept), store.find(dropped)) == (b"kept", None)


def test_a_sweep_leaves_what_is_young(store: ContentStore, tmp_path: Path) -> None:
    digest = store.put(b"text")
    born = file_of(tmp_path, digest).stat().st_mtime
    clock = iter((born - 86_400, born, born + 60, born + 61))
    assert [store.sweep((), 60, clock.__next__) for _ in range(4)] == [0, 0, 0, 1]


def test_a_sweep_takes_what_was_left_unfinished_and_nothing_that_is_not_ours(
    store: ContentStore, tmp_path: Path
) -> None:
    folder = file_of(tmp_path, store.put(b"text")).parent
    for name in (".skillhall-0123", "README"):
        (folder / name).touch()
    (tmp_path / "contents" / "mine").mkdir()
    assert store.sweep({DIGEST}, 60, lambda: 1e12) == 1
    assert sorted(path.name for path in folder.iterdir()) == [DIGEST, "README"]
