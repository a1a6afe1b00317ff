"""GitHub trees: JSON, the cached form and object ids."""

import json

import pytest

from skillhall._internal.sources.commit_tree import TreeEntry
from skillhall._internal.sources.github.tree import dump_tree, load_tree, matches_blob, parse_tree

# `printf hello | git hash-object --stdin`, and the same in a repository with SHA-256
HELLO = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"
HELLO_256 = "8aec4e4876f854f688d0ebfc8f37598f38e5fd6903cccc850ca36591175aeb60"


def test_parse_tree_ignores_folders() -> None:
    folder = {"path": "a", "mode": "040000", "type": "tree", "sha": "2" * 40}
    file = {"path": "a/b", "mode": "100755", "type": "blob", "sha": HELLO, "size": 5, "url": "x"}
    module = {"path": "m", "mode": "160000", "type": "commit", "sha": "3" * 40}
    listing = {"tree": [folder, file, module], "truncated": False}
    entries, is_truncated = parse_tree(json.dumps(listing).encode())
    assert entries == [
        TreeEntry("a/b", "100755", HELLO, 5),
        TreeEntry("m", "160000", "3" * 40, None),
    ]
    assert not is_truncated


@pytest.mark.parametrize("said", [{"truncated": True}, {}, {"truncated": None}])
def test_tree_without_truncated_flag_is_truncated(said: dict[str, object]) -> None:
    assert parse_tree(json.dumps({"tree": [], **said}).encode()) == ([], True)


@pytest.mark.parametrize("digits", [HELLO, HELLO_256])
def test_matches_blob_compares_git_object_id(digits: str) -> None:
    expected = TreeEntry("x", "100644", digits, 5)
    assert matches_blob(b"hello", expected)
    assert not matches_blob(b"hellO", expected)
    assert not matches_blob(b"hello", expected._replace(size=6))


def test_dumped_tree_loads_unchanged() -> None:
    entries = [
        TreeEntry("ü/\udcff", "100644", HELLO, 5),
        TreeEntry("b", "120000", HELLO, 7),
        TreeEntry("m", "160000", HELLO),
    ]
    assert load_tree(dump_tree(entries)) == entries


@pytest.mark.parametrize("size", [{}, {"size": None}, {"size": -1}, {"size": True}, {"size": "5"}])
def test_file_without_size_is_rejected(size: dict[str, object]) -> None:
    file = {"path": "a", "mode": "100644", "sha": HELLO, **size}
    with pytest.raises(ValueError, match="no valid 'size'"):
        parse_tree(json.dumps({"tree": [file], "truncated": False}).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[[]]", b'[["a", "b", "c", 1]]', b"[1]"])
def test_damaged_cached_tree_raises(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        load_tree(data)
