"""Response cache of GitHub: entries per token, damage and eviction."""

import os
from pathlib import Path

import pytest

from skillhall._internal.sources.github.response_cache import GitHubCache

SERVER = "https://api.example"


def cache(folder: Path, token: str = "", server: str = SERVER) -> GitHubCache:
    return GitHubCache(str(folder), server, token)


def test_written_entry_is_read(tmp_path: Path) -> None:
    cache(tmp_path, "a").write("tree", "x", "y", data=b"\x00data")
    assert cache(tmp_path, "a").read("tree", "x", "y") == b"\x00data"


@pytest.mark.parametrize(
    ("token", "server", "kind", "key"),
    [
        ("b", SERVER, "tree", "x"),
        ("", SERVER, "tree", "x"),
        ("a", "https://other.example", "tree", "x"),
        ("a", SERVER, "ref", "x"),
        ("a", SERVER, "tree", "y"),
    ],
)
def test_other_token_server_or_key_is_a_miss(
    tmp_path: Path, token: str, server: str, kind: str, key: str
) -> None:
    cache(tmp_path, "a").write("tree", "x", data=b"data")
    assert cache(tmp_path, token, server).read(kind, key) is None


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 33, -1])
def test_damaged_entry_is_a_miss(tmp_path: Path, cut: int) -> None:
    cache(tmp_path).write("tree", "x", data=b"data")
    [file] = (tmp_path / "github").iterdir()
    file.write_bytes(file.read_bytes()[:cut])
    assert cache(tmp_path).read("tree", "x") is None


@pytest.mark.skipif(os.name == "nt", reason="links need permission there")
def test_link_in_cache_is_not_followed(tmp_path: Path) -> None:
    cache(tmp_path).write("tree", "x", data=b"data")
    [file] = (tmp_path / "github").iterdir()
    target = tmp_path / "target"
    target.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(target)
    assert cache(tmp_path).read("tree", "x") is None
    cache(tmp_path).write("tree", "x", data=b"other")
    assert file.is_symlink()


def test_folder_that_cannot_be_created_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "github").write_bytes(b"")
    responses = cache(tmp_path)
    responses.write("tree", "x", data=b"data")
    responses.evict()
    assert responses.read("tree", "x") is None


def test_oldest_entries_are_evicted_first(tmp_path: Path) -> None:
    responses = cache(tmp_path)
    for number in range(5):
        known = set((tmp_path / "github").glob("*"))
        responses.write("tree", str(number), data=b"x")
        [new] = set((tmp_path / "github").glob("*")) - known
        os.utime(new, (number, number))
    responses.evict(capacity=3 * 4096)
    assert [responses.read("tree", str(number)) for number in range(5)] == [None, None, *[b"x"] * 3]


def test_huge_entry_is_not_cached(tmp_path: Path) -> None:
    cache(tmp_path).write("tree", "x", data=os.urandom(33 << 20))
    assert cache(tmp_path).read("tree", "x") is None
