"""Contract of skill stores: folders and databases behave the same."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.skill_store.store import ALL_FILES_SCAN, SkillStore
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall.errors import (
    Conflict,
    ReadOnly,
    SkillhallError,
    SkillNotFound,
    SkillRejected,
    UnsafePath,
)
from tests.support.bundles import build_single_bundle
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture(params=["folders", "sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, open_database_of: Callable[[str], Database], tmp_path: Path
) -> Iterator[SkillStore]:
    (tmp_path / "run").mkdir()
    if request.param == "folders":
        yield FolderStore(tmp_path / "run")
        return
    table = SqlSharedSkillTable(open_database_of(request.param))
    with closing(SkillMirror(table, str(tmp_path / "mirror"))) as mirror:
        yield DatabaseStore(str(tmp_path / "run"), table, mirror)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return tmp_path / "run" / ".agents" / "sys.skills"


def bundle(name: str = "pdf", body: str = "Read.", **files: bytes) -> Bundle:
    named = {path.replace("__", "/").replace("_", "."): data for path, data in files.items()}
    skill_md = make_skill_md(name, "Reads.", body)
    return build_single_bundle({"SKILL.md": skill_md, **named}, name)


def list_skills(store: SkillStore) -> list[tuple[str, str]]:
    return [(skill.id, skill.source) for skill in store.catalog()]


def read_files(store: SkillStore, identity: str) -> dict[str, tuple[bytes, bool]]:
    skill = next(skill for skill in store.catalog() if skill.id == identity)
    files = open_skill_bundle(skill, ALL_FILES_SCAN).files
    return {path: (file.read(), file.executable) for path, file in files.items()}


def test_added_skill_is_listed(store: SkillStore) -> None:
    before = store.revision()
    item = store.add(" My Notes!", "My notes", 'Takes "notes": all.', "Write.\n")
    assert (item.id, item.name, item.source) == ("my-notes", "My notes", "user")
    assert list_skills(store) == [("my-notes", "user")]
    assert read_files(store, "my-notes")["SKILL.md"][0].endswith(b"---\nWrite.\n")
    assert store.revision() != before


def test_import_preserves_bytes_and_executable_bits(store: SkillStore, tmp_path: Path) -> None:
    script = b"#!/bin/sh\n"
    source = make_skill(tmp_path, "pdf", files={"run.sh": script, ".a/b": bytes(range(256))})
    (source / "run.sh").chmod(0o755)
    store.import_(open_bundle(FolderHandle(str(tmp_path), "pdf"), ALL_FILES_SCAN))
    files = read_files(store, "pdf")
    assert files["run.sh"] == (script, True)
    assert files[".a/b"] == (bytes(range(256)), False)


@pytest.mark.parametrize("identity", ["", "..", "a/b", "nul\0", "con", "new\nline"])
def test_unsafe_id_is_rejected(store: SkillStore, identity: str) -> None:
    with pytest.raises(UnsafePath):
        store.add(identity, "Name", "Description.")
    assert list_skills(store) == []


@pytest.mark.parametrize("other", ["pdf", "PDF", " Pdf "])
def test_taken_id_is_rejected(store: SkillStore, other: str) -> None:
    store.add("pdf", "pdf", "Reads.")
    before = read_files(store, "pdf")
    with pytest.raises(Conflict):
        store.add(other, "Other", "Writes.")
    with pytest.raises(Conflict):
        store.import_(bundle(), other)
    assert read_files(store, "pdf") == before


def test_ids_that_are_equal_on_some_system_conflict(store: SkillStore) -> None:
    store.add("straße", "Road", "Leads.")
    with pytest.raises(Conflict):
        store.add("strasse", "Road", "Leads.")
    report = store.import_(bundle(), "strasse", replace=True)
    assert (report.imported[0].id, report.replaced) == ("straße", ("straße",))
    assert list_skills(store) == [("straße", "user")]


def test_import_replaces_all_files_of_a_skill(store: SkillStore) -> None:
    store.import_(bundle(old_txt=b"old"))
    before = store.revision()
    report = store.import_(bundle(body="Other.", new_txt=b"new"), replace=True)
    assert report.replaced == ("pdf",)
    assert sorted(read_files(store, "pdf")) == ["SKILL.md", "new.txt"]
    assert store.revision() != before


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (bundle("taken"), Conflict),
        (bundle("csv"), Conflict),
        (build_single_bundle({"SKILL.md": b"# Nothing\n"}, "broken"), SkillRejected),
    ],
    ids=["taken", "twice", "broken"],
)
def test_import_of_several_skills_is_atomic(
    store: SkillStore, second: Bundle, error: type[SkillhallError]
) -> None:
    store.add("taken", "Taken", "Is there.")
    with pytest.raises(error):
        store.import_([bundle("csv"), second])
    assert list_skills(store) == [("taken", "user")]


def test_system_skills_are_read_only_and_reserve_their_ids(store: SkillStore, system: Path) -> None:
    make_skill(system, "pdf")
    with pytest.raises(Conflict):
        store.add("pdf", "pdf", "Mine.")
    with pytest.raises(ReadOnly):
        store.import_(bundle("pdf"), replace=True)
    with pytest.raises(ReadOnly):
        store.delete("pdf")
    assert list_skills(store) == [("pdf", "system")]


def test_system_skill_shadows_a_user_skill(store: SkillStore, system: Path) -> None:
    store.add("pdf", "pdf", "Mine.")
    before = store.revision()
    make_skill(system, "pdf")
    assert store.revision() != before
    assert list_skills(store) == [("pdf", "system")]
    store.delete("pdf", shadowed=True)
    assert store.catalog().shadowed == ()


def test_deleted_skill_is_no_longer_listed(store: SkillStore) -> None:
    store.import_([bundle("pdf"), bundle("csv")])
    before = store.revision()
    store.delete("pdf")
    assert list_skills(store) == [("csv", "user")]
    assert store.revision() != before
    with pytest.raises(SkillNotFound) as error_info:
        store.delete("cvs")
    assert error_info.value.close == ("csv",)


Files = dict[str, tuple[bytes, int]]


def test_rewrite_replaces_adds_and_deletes_skills(store: SkillStore) -> None:
    store.import_([bundle("pdf", old_txt=b"old"), bundle("csv")])
    skill_md = make_skill_md("pdf", "Reads.", "Other.")

    def compute_files(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        assert present["new"] is None
        assert present["pdf"] is not None
        assert present["pdf"].files["old.txt"].read() == b"old"
        files = {"SKILL.md": (skill_md, 0o644), "run.sh": (b"#!", 0o755)}
        return {"pdf": files, "csv": None, "new": files}

    before = store.revision()
    store.rewrite(["pdf", "csv", "new"], compute_files)
    assert list_skills(store) == [("new", "user"), ("pdf", "user")]
    assert read_files(store, "pdf") == {"SKILL.md": (skill_md, False), "run.sh": (b"#!", True)}
    assert store.revision() != before


def test_rewrite_that_raises_changes_nothing(store: SkillStore) -> None:
    store.import_(bundle("pdf"))
    before = store.revision(), read_files(store, "pdf")

    def raise_not_found(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        raise SkillNotFound("pdf", [*present])

    with pytest.raises(SkillNotFound):
        store.rewrite(["pdf"], raise_not_found)
    assert (store.revision(), read_files(store, "pdf")) == before


def test_concurrent_rewrites_see_each_others_changes(store: SkillStore) -> None:
    store.import_(bundle("pdf", count_txt=b"0"))

    def count(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        assert present["pdf"] is not None
        files = {path: (file.read(), 0o644) for path, file in present["pdf"].files.items()}
        files["count.txt"] = b"%d" % (int(files["count.txt"][0]) + 1), 0o644
        return {"pdf": files}

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(store.rewrite, ["pdf"], count) for _ in range(8)]:
            future.result()
    assert read_files(store, "pdf")["count.txt"][0] == b"8"


def test_delete_keeps_a_shadowed_user_skill_unless_requested(
    store: SkillStore, system: Path
) -> None:
    store.import_(bundle(body="Mine."))
    make_skill(system, "pdf", data=make_skill_md("pdf", "Shipped."))
    with pytest.raises(ReadOnly) as error_info:
        store.delete("pdf")
    assert error_info.value.variant == "shadows"
    assert store.files("pdf") is not None
    store.delete("pdf", shadowed=True)
    assert store.files("pdf") is None
    with pytest.raises(SkillNotFound):
        store.delete("pdf", shadowed=True)


def test_delete_shadowed_rejects_a_skill_that_is_not_shadowed(store: SkillStore) -> None:
    store.import_(bundle())
    with pytest.raises(SkillNotFound):
        store.delete("pdf", shadowed=True)
    assert store.files("pdf") is not None
