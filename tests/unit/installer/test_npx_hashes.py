import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.installer.npx_lock import (
    compute_git_tree_id,
    compute_npx_hash,
    has_portable_order,
)
from skillhall._internal.skill.merge import FileState

TREES = [
    {},
    {"SKILL.md": FileState(b"x")},
    {
        "a/b": FileState(b"1"),
        "a.b": FileState(b"2"),
        "a-b": FileState(b"3"),
        "a0": FileState(b"4"),
    },
    {"run.sh": FileState(b"#!/bin/sh\n", executable=True), "run": FileState(b"")},
    {"größe/ä.md": FileState("ü".encode()), "deep/er/and/deeper": FileState(bytes(range(256)))},
]


@pytest.mark.parametrize("files", TREES, ids=",".join)
def test_git_tree_id_equals_that_of_git(files: dict[str, FileState], tmp_path: Path) -> None:
    def git(*args: str) -> str:
        result = subprocess.run(["git", *args], cwd=tmp_path, check=True, capture_output=True)
        return result.stdout.decode().strip()

    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content.data)
        (tmp_path / path).chmod(0o755 if content.executable else 0o644)
    git("init", "-q")
    git("-c", "core.autocrlf=false", "add", "-A")
    assert compute_git_tree_id(files) == git("write-tree")


def test_npx_hash_uses_the_order_of_javascript() -> None:
    # The order of `sort((a, b) => a.localeCompare(b))`.
    names = ["_a", "-a", ".a", "a", "A", "a b", "a_b", "a-b", "a.md", "a/b", "a/B", "A/b", "a1"]
    names += ["a10", "a2", "ab", "aB", "Ab", "AB", "ab.md", "b", "B", "references/a.md"]
    names += ["Scripts/run", "scripts/run.py", "SKILL.md", "skill.txt"]
    expected = hashlib.sha256("".join(f"{name}\n" for name in names).encode()).hexdigest()
    assert compute_npx_hash(dict.fromkeys(sorted(names), b"\n")) == expected


def test_git_and_npm_folders_are_not_hashed() -> None:
    files = {"SKILL.md": b"x", "node_modules": b"a file", "lib/.git": b"a file"}
    ignored = {".git/HEAD": b"", "node_modules/a/b": b"", "lib/node_modules/c": b""}
    assert compute_npx_hash({**files, **ignored}) == compute_npx_hash(files)
    assert compute_npx_hash(files) != compute_npx_hash({"SKILL.md": b"x"})


def test_only_ascii_paths_have_a_portable_order() -> None:
    assert has_portable_order({"SKILL.md": b"", "a b/c": b""})
    assert not has_portable_order({"SKILL.md": b"", "größe.md": b""})


@given(st.dictionaries(st.text("ab/é😀", min_size=1), st.binary(max_size=3)))
def test_npx_hash_does_not_depend_on_file_order(files: dict[str, bytes]) -> None:
    assert compute_npx_hash(files) == compute_npx_hash(dict(reversed(files.items())))
