"""A stored listing is used only while every folder and SKILL.md is unchanged."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skillhall._internal.catalog.cache_file import CACHE_FOLDER, CLOCK_GRANULARITY
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.listing_cache import ListingCache, ScanState
from skillhall._internal.catalog.scan_state import capture_state
from tests.support.trees import scan_below, skill_text, write_skill


def later() -> int:
    """Return a start of the scan at which all files are old enough."""
    return now_ns() + 2 * CLOCK_GRANULARITY


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write_skill(root / "one")
    write_skill(root / "group" / "two")
    (root / "group" / "empty").mkdir()
    (root / "one" / "scripts").mkdir()
    return root


def capture(root: Path) -> ScanState:
    state = capture_state(scan_below(root), later())
    assert state is not None
    return state


def store(cache: Path, root: Path, output: bytes) -> None:
    writer = ListingCache(str(cache), str(root), "options").create(capture(root), ["message"])
    assert writer is not None
    writer.write(output)
    writer.finish()


def find(cache: Path, root: Path, options: str = "options") -> bytes | None:
    stored = ListingCache(str(cache), str(root), options).find()
    return None if stored is None else b"".join(stored.chunks())


def test_unchanged_tree_is_current(root: Path) -> None:
    assert capture(root).is_current(str(root))


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "one/SKILL.md").write_text(skill_text("one", "New."), "utf-8"),
        lambda root: (root / "one/SKILL.md").unlink(),
        lambda root: shutil.rmtree(root / "one"),
        lambda root: write_skill(root / "three"),
        lambda root: write_skill(root / "group" / "three"),
        lambda root: write_skill(root / "group" / "empty"),
        lambda root: (root / "group").rename(root / "other"),
        lambda root: (root / "link").symlink_to("one"),
        lambda root: (root / "group/empty").chmod(0o700),
        shutil.rmtree,
    ],
)
def test_every_change_that_a_scan_sees_is_noticed(
    root: Path, change: Callable[[Path], object]
) -> None:
    state = capture(root)
    change(root)
    assert not state.is_current(str(root))


def test_files_that_a_scan_does_not_see_do_not_matter(root: Path) -> None:
    state = capture(root)
    (root / "one" / "scripts" / "run.py").write_text("", "utf-8")
    assert state.is_current(str(root))


def test_folder_that_becomes_a_link_is_noticed(root: Path, tmp_path: Path) -> None:
    state = capture(root)
    (root / "one").rename(tmp_path / "moved")
    (root / "one").symlink_to(tmp_path / "moved")
    assert not state.is_current(str(root))


def test_young_files_and_links_are_not_captured(root: Path) -> None:
    assert capture_state(scan_below(root), now_ns()) is None
    (root / "link").symlink_to("one")
    assert capture_state(scan_below(root), later()) is None


def test_stored_output_is_returned(root: Path, tmp_path: Path) -> None:
    assert find(tmp_path, root) is None
    store(tmp_path, root, b"x" * 3_000_000)
    assert find(tmp_path, root) == b"x" * 3_000_000
    assert find(tmp_path, root, "other options") is None
    write_skill(root / "three")
    assert find(tmp_path, root) is None


@pytest.mark.parametrize("position", [0, 200, -1])
def test_damaged_file_is_ignored(root: Path, tmp_path: Path, position: int) -> None:
    store(tmp_path, root, b"output")
    [file] = (tmp_path / CACHE_FOLDER).iterdir()
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)
    assert find(tmp_path, root) is None
    file.write_bytes(data[: len(data) // 2])
    assert find(tmp_path, root) is None


@pytest.mark.skipif(os.name == "nt", reason="no permission bits")
def test_file_that_others_can_write_is_ignored(root: Path, tmp_path: Path) -> None:
    store(tmp_path, root, b"output")
    [file] = (tmp_path / CACHE_FOLDER).iterdir()
    file.chmod(0o666)
    assert find(tmp_path, root) is None
