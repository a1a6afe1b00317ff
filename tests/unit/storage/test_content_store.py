import hashlib
import os
from pathlib import Path

import pytest

from skillhall._internal.storage.content_store import ContentStore

DIGEST = hashlib.sha256(b"text").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(str(tmp_path))


def get_path(folder: Path, digest: str) -> Path:
    return folder / "contents" / digest[:2] / digest


@pytest.mark.parametrize("data", [b"", b"text", bytes(range(256)) * 5000])
def test_content_is_found_by_digest(data: bytes, store: ContentStore) -> None:
    digest = store.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert store.find(digest) == data


def test_store_is_readable_only_by_its_owner(store: ContentStore, tmp_path: Path) -> None:
    file = get_path(tmp_path, store.put(b"text"))
    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_putting_equal_content_only_updates_its_mtime(store: ContentStore, tmp_path: Path) -> None:
    file = get_path(tmp_path, store.put(b"text"))
    before = file.stat()
    os.utime(file, (0, 0))
    store.put(b"text")
    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_mtime >= before.st_mtime
    assert [path.name for path in file.parent.iterdir()] == [DIGEST]


@pytest.mark.parametrize(
    "digest", ["", "0" * 64, "../../secret", f"sha256:{DIGEST}", DIGEST.upper(), f"{DIGEST}\n"]
)
def test_unknown_digest_is_not_found(digest: str, store: ContentStore) -> None:
    store.put(b"text")
    assert store.find(digest) is None


@pytest.mark.parametrize("damage", [b"", b"texT", b"text and more"])
def test_damaged_content_is_missing_until_it_is_put_again(
    damage: bytes, store: ContentStore, tmp_path: Path
) -> None:
    file = get_path(tmp_path, store.put(b"text"))
    file.write_bytes(damage)
    assert store.find(DIGEST) is None
    assert not file.exists()
    file.write_bytes(damage)
    assert store.find(store.put(b"text")) == b"text"


def test_linked_content_is_not_followed(store: ContentStore, tmp_path: Path) -> None:
    file = get_path(tmp_path, store.put(b"text"))
    (tmp_path / "outside").write_bytes(b"text")
    file.unlink()
    file.symlink_to(tmp_path / "outside")
    assert store.find(DIGEST) is None
    with pytest.raises(FileExistsError):
        store.put(b"text")
    assert (tmp_path / "outside").read_bytes() == b"text"


def test_linked_folder_is_not_written(store: ContentStore, tmp_path: Path) -> None:
    (tmp_path / "contents").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "contents" / DIGEST[:2]).symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"directory|link"):
        store.put(b"text")
    assert list((tmp_path / "outside").iterdir()) == []
    assert store.find(DIGEST) is None


def test_unusable_store_raises_only_from_put(tmp_path: Path) -> None:
    (tmp_path / "contents").write_bytes(b"not a folder")
    store = ContentStore(str(tmp_path))
    with pytest.raises(OSError, match="exists"):
        store.put(b"text")
    assert store.find(DIGEST) is None
    assert store.sweep([], 0, lambda: 1e12) == 0


def test_unused_store_is_empty(store: ContentStore, tmp_path: Path) -> None:
    assert store.find(DIGEST) is None
    assert store.sweep([], 0, lambda: 1e12) == 0
    assert list(tmp_path.iterdir()) == []


def test_sweep_deletes_unreferenced_contents(store: ContentStore) -> None:
    referenced, unreferenced = store.put(b"referenced"), store.put(b"unreferenced")
    assert store.sweep({referenced}, 60, lambda: 1e12) == 1
    assert (store.find(referenced), store.find(unreferenced)) == (b"referenced", None)


def test_sweep_keeps_recent_contents(store: ContentStore, tmp_path: Path) -> None:
    digest = store.put(b"text")
    created = get_path(tmp_path, digest).stat().st_mtime
    clock = iter((created - 86_400, created, created + 60, created + 61))
    assert [store.sweep((), 60, clock.__next__) for _ in range(4)] == [0, 0, 0, 1]


def test_sweep_deletes_leftovers_but_no_foreign_files(store: ContentStore, tmp_path: Path) -> None:
    folder = get_path(tmp_path, store.put(b"text")).parent
    for name in (".skillhall-0123", "README"):
        (folder / name).touch()
    (tmp_path / "contents" / "mine").mkdir()
    assert store.sweep({DIGEST}, 60, lambda: 1e12) == 1
    assert sorted(path.name for path in folder.iterdir()) == [DIGEST, "README"]
