import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.installer.npx_hashes import (
    Content,
    computed_hash,
    git_tree_id,
    is_comparable,
)

TREES = [
    {},
    {"SKILL.md": Content(b"x")},
    {"a/b": Content(b"1"), "a.b": Content(b"2"), "a-b": Content(b"3"), "a0": Content(b"4")},
    {"run.sh": Content(b"#!/bin/sh\n", executable=True), "run": Content(b"")},
    {"größe/ä.md": Content("ü".encode()), "deep/er/and/deeper": Content(bytes(range(256)))},
]


@pytest.mark.parametrize("files", TREES, ids=",".join)
def test_a_folder_has_the_id_that_git_gives_it(files: dict[str, Content], tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
        return done.stdout.decode().strip()

    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content.data)
        (tmp_path / path).chmod(0o755 if content.executable else 0o644)
    git("init", "-q")
    git("-c", "core.autocrlf=false", "add", "-A")
    assert git_tree_id(files) == git("write-tree")


def test_files_are_hashed_in_the_order_of_javascript() -> None:
    # As `sort((a, b) => a.localeCompare(b))` puts them.
    names = ["_a", "-a", ".a", "a", "A", "a b", "a_b", "a-b", "a.md", "a/b", "a/B", "A/b", "a1"]
    names += ["a10", "a2", "ab", "aB", "Ab", "AB", "ab.md", "b", "B", "references/a.md"]
    names += ["Scripts/run", "scripts/run.py", "SKILL.md", "skill.txt"]
    expected = hashlib.sha256("".join(f"{name}\n" for name in names).encode()).hexdigest()
    assert computed_hash(dict.fromkeys(sorted(names), b"\n")) == expected


def test_what_belongs_to_git_and_npm_does_not_count() -> None:
    files = {"SKILL.md": b"x", "node_modules": b"a file", "lib/.git": b"a file"}
    litter = {".git/HEAD": b"", "node_modules/a/b": b"", "lib/node_modules/c": b""}
    assert computed_hash({**files, **litter}) == computed_hash(files)
    assert computed_hash(files) != computed_hash({"SKILL.md": b"x"})


def test_only_ascii_paths_can_be_compared() -> None:
    assert is_comparable({"SKILL.md": b"", "a b/c": b""})
    assert not is_comparable({"SKILL.md": b"", "größe.md": b""})


@given(st.dictionaries(st.text("ab/é😀", min_size=1), st.binary(max_size=3)))
def test_the_hash_does_not_depend_on_the_order_of_the_files(files: dict[str, bytes]) -> None:
    assert computed_hash(files) == computed_hash(dict(reversed(files.items())))
