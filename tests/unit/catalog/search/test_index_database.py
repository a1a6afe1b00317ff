"""Search index in a file: restarts, changes, damage and other processes."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.search.query_ranker import Ranking
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.catalog.skill_content import read_skill_md
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.catalogs import search_names
from tests.support.skills import make_skill_md


class Reader:
    """Reads texts and records which."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, skill: CatalogSkill) -> bytes:
        self.names.append(skill.name)
        return read_skill_md(skill)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    write_skill(folder, "tea", "Brew it for three minutes.")
    write_skill(folder, "coffee", "Grind the beans.")
    return folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "cache" / "index.db")


def write_skill(folder: Path, name: str, body: str) -> None:
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(make_skill_md(name, f"Makes {name}.", body))


def tell_later_time() -> int:
    """Return a time at which files that have just changed are old enough to be stored."""
    return now_ns() + 2 * CLOCK_GRANULARITY


def open_index(root: Path, path: str, reader: Reader | None = None) -> SearchIndex:
    settings = Settings(str(root), str(root), use_head_cache=False)
    index = SearchIndex(path, reader or Reader(), clock=tell_later_time)
    index.update(load_catalog([str(root)], settings=settings))
    index.read_texts()
    return index


def test_restart_reads_only_changed_texts(root: Path, path: str) -> None:
    first = Reader()
    open_index(root, path, first).close()
    assert sorted(first.names) == ["coffee", "tea"]
    write_skill(root, "tea", "Steep the leaves, slowly.")
    write_skill(root, "soup", "Boil the carrots.")
    second = Reader()
    index = open_index(root, path, second)
    assert sorted(second.names) == ["soup", "tea"]
    assert search_names(index, "carrots") == ["soup"]
    assert search_names(index, "leaves") == ["tea"]
    assert search_names(index, "three minutes") == []
    assert search_names(index, "beans") == ["coffee"]


def test_removed_skill_is_not_found_after_a_restart(root: Path, path: str) -> None:
    open_index(root, path).close()
    (root / "tea" / "SKILL.md").unlink()
    assert search_names(open_index(root, path), "tea brew") == []


def test_copy_that_is_added_later_is_one_hit_with_the_first(root: Path, path: str) -> None:
    open_index(root, path).close()
    text = (root / "tea" / "SKILL.md").read_bytes()
    for name in ("leaf", "pot"):
        (root / name).mkdir()
        (root / name / "SKILL.md").write_bytes(text.replace(b"name: tea", f"name: {name}".encode()))
        index = open_index(root, path)
        (hit,) = index.search("minutes").hits
        index.close()
    assert sorted([hit.skill.name, *(copy.name for copy in hit.copies)]) == ["leaf", "pot", "tea"]


def test_beginnings_and_headings_are_indexed_with_many_skills(root: Path, path: str) -> None:
    filler = "water " * 300
    write_skill(root, "tea", f"Brew it. {filler}\n## Thermometers\nUse kelvin.")
    ranking = Ranking(max_complete_texts=2)
    settings = Settings(str(root), str(root), use_head_cache=False)

    def search(word: str) -> tuple[list[str], bool]:
        index = SearchIndex(path, ranking=ranking, clock=tell_later_time)
        index.update(load_catalog([str(root)], settings=settings))
        index.read_texts()
        found = search_names(index, word)
        index.close()
        return found, index.has_complete_texts

    assert search("kelvin") == (["tea"], True)
    write_skill(root, "soup", "Boil the carrots.")
    assert search("kelvin") == ([], False)
    assert search("thermometers") == (["tea"], False)
    (root / "soup" / "SKILL.md").unlink()
    assert search("kelvin") == (["tea"], True)


def test_growing_collection_is_indexed_again_while_it_is_searched(root: Path) -> None:
    write_skill(root, "tea", "water " * 300 + "kelvin")
    settings = Settings(str(root), str(root), use_head_cache=False)
    index = SearchIndex(None, ranking=Ranking(max_complete_texts=2), clock=tell_later_time)
    for added, found in (("", ["tea"]), ("soup", [])):
        if added:
            write_skill(root, added, "Boil the carrots.")
        index.update(load_catalog([str(root)], settings=settings))
        index.read_texts()
        assert search_names(index, "kelvin") == found
    assert search_names(index, "grind") == ["coffee"]


def test_model_that_is_configured_later_ranks_all_texts(root: Path, path: str) -> None:
    class Model:
        is_enabled = True
        problem = ""

        def rank(self, query: str, digests: Collection[str], k: int) -> Sequence[str]:
            assert query
            return sorted(digests)[:k]

    open_index(root, path).close()
    index = SearchIndex(path, semantic=Model(), clock=tell_later_time)
    index.update(load_catalog([str(root)], settings=Settings(str(root), str(root))))
    index.read_texts()
    assert sorted(search_names(index, "hot drinks")) == ["coffee", "tea"]


def test_file_that_has_just_changed_is_read_again(root: Path, path: str) -> None:
    catalog = load_catalog([str(root)], settings=Settings(str(root), str(root)))
    for _ in range(2):
        reader = Reader()
        index = SearchIndex(path, reader)
        index.update(catalog)
        index.read_texts()
        index.close()
        assert len(reader.names) == 2


@pytest.mark.parametrize("damage", ["garbage", "truncated", "pages"])
def test_damaged_file_is_built_again_and_reported_once(
    root: Path, path: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_index(root, path).close()
    file = Path(path)
    data = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"not a database" * 1000)
    elif damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    else:  # the first page is intact
        file.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with caplog.at_level(logging.WARNING):
        index = open_index(root, path)
        assert search_names(index, "beans") == ["coffee"]
        assert search_names(index, "minutes") == ["tea"]
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the search index was damaged and is being rebuilt"
    ]
    index.close()
    reader = Reader()
    open_index(root, path, reader)
    assert reader.names == []


def test_file_that_is_damaged_while_it_is_open_is_built_again(root: Path, path: str) -> None:
    index = open_index(root, path)
    Path(path).write_bytes(b"\xff" * Path(path).stat().st_size)
    assert search_names(index, "beans") == ["coffee"]


def test_file_that_another_process_has_locked_is_left_alone(root: Path, path: str) -> None:
    open_index(root, path).close()
    write_skill(root, "soup", "Boil the carrots.")
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    index = open_index(root, path)
    assert search_names(index, "carrots") == ["soup"]
    assert search_names(index, "beans") == ["coffee"]
    other.rollback()
    assert other.execute("SELECT count(*) FROM places").fetchone() == (2,)


def test_index_that_cannot_be_stored_is_in_memory(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    index = open_index(root, str(tmp_path / "file" / "index.db"))
    assert search_names(index, "beans") == ["coffee"]


def test_file_of_another_version_is_replaced(root: Path, path: str) -> None:
    open_index(root, path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    assert search_names(open_index(root, path), "beans") == ["coffee"]


def test_file_that_others_can_write_is_not_used(root: Path, path: str) -> None:
    open_index(root, path).close()
    Path(path).chmod(0o666)
    reader = Reader()
    open_index(root, path, reader)
    assert len(reader.names) == 2


def test_text_that_vanishes_after_indexing_is_still_found_by_its_description(
    root: Path, path: str
) -> None:
    index = open_index(root, path)
    (root / "tea" / "SKILL.md").unlink()
    (hit,) = index.search("minutes").hits
    assert hit.snippet.text == "Makes tea."


def test_search_without_full_text_search_says_what_is_missing() -> None:
    script = (
        "import sqlite3\n"
        "class WithoutFts(sqlite3.Connection):\n"
        "    def executescript(self, sql):\n"
        "        return super().executescript(sql.replace('fts5', 'no_such_module'))\n"
        "connect = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, factory=WithoutFts, **k)\n"
        "from skillhall._internal.catalog.search.search_index import SearchIndex\n"
        "from skillhall.errors import DatabaseUnavailable\n"
        "try:\n"
        "    SearchIndex()\n"
        "except DatabaseUnavailable as error:\n"
        "    print(error)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert b"lacks full-text search" in result.stdout
