"""Readers of a skill that is being replaced get either the old or the new version."""

import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillhall import load_skill_bundle
from skillhall._internal.catalog.manifests import ManifestCache
from skillhall._internal.catalog.skill_content import activate, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.bundles import make_bundle
from tests.support.skills import make_skill_md
from tests.support.symlink_races import make_memory_folder

SWAPS = 80
MAX_FILES = 12


def version(number: int) -> dict[str, bytes]:
    """Build a version whose files contain its number; odd versions have more files."""
    count = MAX_FILES if number % 2 else 2
    body = f"Version {number}\n"
    files = {f"docs/{i}.md": f"{number}".encode() for i in range(count)}
    return {"SKILL.md": make_skill_md("pdf", body=body), **files}


@pytest.fixture
def collection() -> Iterator[Collection]:
    with make_memory_folder() as folder:
        store = FolderStore(folder)
        store.import_(make_bundle(version(0)), "pdf")
        yield Collection(store, Settings(str(folder), str(folder / "cache")))


@contextmanager
def replacing(collection: Collection) -> Iterator[threading.Event]:
    """Replace the skill repeatedly; set the event at the end."""
    done, errors = threading.Event(), []

    def swap() -> None:
        try:
            for number in range(1, SWAPS):
                collection.store.import_(make_bundle(version(number)), "pdf", replace=True)
        except BaseException as error:  # noqa: BLE001 - checked by the test
            errors.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=swap)
    writer.start()
    try:
        yield done
    finally:
        writer.join()
    assert errors == []


def read_archive(collection: Collection) -> set[bytes]:
    with zipfile.ZipFile(io.BytesIO(collection.archive("pdf"))) as archive:
        return {archive.read(name) for name in archive.namelist() if name != "SKILL.md"}


def read_details(collection: Collection) -> set[object]:
    details = collection.details("pdf")
    return {file.digest() for file in details.files if file.path.text != "SKILL.md"}


def read_manifest(collection: Collection) -> set[object]:
    view = collection.current_view()
    files = ManifestCache().get(view, view.find("pdf")).files
    return {file.digest for file in files if file.path != "SKILL.md"}


def read_by_tool(collection: Collection) -> set[object]:
    view = collection.current_view()
    row = view.find("pdf")
    assert view.read_file(row, "docs/0.md").isdigit()
    assert view.read_body(row).startswith("Version")
    return {"docs/1.md" in view.list_files(row)}


def read_published(collection: Collection) -> set[object]:
    assert collection.read_file("pdf", "docs/1.md").isdigit()
    assert [skill.id for skill, _ in collection.file_lists()] == ["pdf"]
    assert [artifact.entry.id for artifact in collection.artifacts()] == ["pdf"]
    return {collection.read_published_file("pdf", "docs/0.md").isdigit()}


def read_by_library(collection: Collection) -> set[object]:
    skill = load_catalog([f"{collection.store.location}/skills"]).find("pdf")
    assert "Version" in activate(ClearedSkill(skill))
    files = load_skill_bundle(skill.directory).files
    return {data for path, data in files.items() if path != "SKILL.md"}


def list_local(collection: Collection) -> set[object]:
    return {tuple(skill.id for skill in collection.store.catalog())}


@pytest.mark.parametrize(
    "read",
    [
        read_archive,
        read_details,
        read_manifest,
        read_by_tool,
        read_published,
        read_by_library,
        list_local,
    ],
)
def test_reader_of_a_replaced_skill_gets_one_version(
    collection: Collection, read: Callable[[Collection], set[object]]
) -> None:
    with replacing(collection) as done:
        while not done.is_set():
            assert len(read(collection)) == 1


def test_set_aside_folder_is_read_until_it_is_replaced(collection: Collection) -> None:
    # Where the system cannot swap two names, a replacement takes two renames.
    skills = Path(collection.store.location) / "skills"
    (skills / "pdf").rename(skills / ".skillhall-old-pdf")
    skill = load_catalog([str(skills)]).find("pdf")
    assert "Version 0" in activate(ClearedSkill(skill))
    assert read_skill_file(ClearedSkill(skill), "docs/0.md") == b"0"
    assert [skill.id for skill in collection.store.catalog()] == ["pdf"]
    assert read_archive(collection) == {b"0"}
    collection.store.import_(make_bundle(version(1)), "pdf", replace=True)
    assert read_archive(collection) == {b"1"}
    assert [path.name for path in skills.iterdir()] == ["pdf"]
