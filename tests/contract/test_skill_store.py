"""The skills that a server keeps itself: folders and databases do the same."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.catalog.reader import open_skill_bundle
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.folder_store import ALL_FILES_SCAN, FolderStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.skill_store.store import SkillStore
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.opener import build_single_bundle
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
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture(params=["folders", "sqlite", "postgres"])
def own(
    request: pytest.FixtureRequest, database_of: Callable[[str], Database], tmp_path: Path
) -> Iterator[SkillStore]:
    (tmp_path / "run").mkdir()
    if request.param == "folders":
        yield FolderStore(tmp_path / "run")
        return
    store = SqlSharedSkillTable(database_of(request.param))
    with closing(SkillMirror(store, str(tmp_path / "mirror"))) as mirror:
        yield DatabaseStore(str(tmp_path / "run"), store, mirror)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return tmp_path / "run" / ".agents" / "sys.skills"


def bundle(name: str = "pdf", body: str = "Read.", **files: bytes) -> Bundle:
    named = {path.replace("__", "/").replace("_", "."): data for path, data in files.items()}
    skill_md = make_skill_md(name, "Reads.", body)
    return build_single_bundle({"SKILL.md": skill_md, **named}, name)


def listed(own: SkillStore) -> list[tuple[str, str]]:
    return [(skill.id, skill.source) for skill in own.catalog()]


def files_of(own: SkillStore, identity: str) -> dict[str, tuple[bytes, bool]]:
    skill = next(skill for skill in own.catalog() if skill.id == identity)
    files = open_skill_bundle(skill, ALL_FILES_SCAN).files
    return {path: (file.read(), file.executable) for path, file in files.items()}


def test_a_new_skill_is_there_at_once(own: SkillStore) -> None:
    before = own.revision()
    item = own.add(" My Notes!", "My notes", 'Takes "notes": all.', "Write.\n")
    assert (item.id, item.name, item.source) == ("my-notes", "My notes", "user")
    assert listed(own) == [("my-notes", "user")]
    assert files_of(own, "my-notes")["SKILL.md"][0].endswith(b"---\nWrite.\n")
    assert own.revision() != before


def test_bytes_and_executable_bits_arrive_intact(own: SkillStore, tmp_path: Path) -> None:
    script = b"#!/bin/sh\n"
    source = make_skill(tmp_path, "pdf", files={"run.sh": script, ".a/b": bytes(range(256))})
    (source / "run.sh").chmod(0o755)
    own.import_(open_bundle(FolderHandle(str(tmp_path), "pdf"), ALL_FILES_SCAN))
    found = files_of(own, "pdf")
    assert found["run.sh"] == (script, True)
    assert found[".a/b"] == (bytes(range(256)), False)


@pytest.mark.parametrize("identity", ["", "..", "a/b", "nul\0", "con", "new\nline"])
def test_an_id_that_is_no_safe_name_is_refused(own: SkillStore, identity: str) -> None:
    with pytest.raises(UnsafePath):
        own.add(identity, "Name", "Description.")
    assert listed(own) == []


@pytest.mark.parametrize("other", ["pdf", "PDF", " Pdf "])
def test_an_id_that_is_taken_is_refused(own: SkillStore, other: str) -> None:
    own.add("pdf", "pdf", "Reads.")
    before = files_of(own, "pdf")
    with pytest.raises(Conflict):
        own.add(other, "Other", "Writes.")
    with pytest.raises(Conflict):
        own.import_(bundle(), other)
    assert files_of(own, "pdf") == before


def test_ids_that_are_one_on_some_system_are_one(own: SkillStore) -> None:
    own.add("straße", "Road", "Leads.")
    with pytest.raises(Conflict):
        own.add("strasse", "Road", "Leads.")
    report = own.import_(bundle(), "strasse", replace=True)
    assert (report.imported[0].id, report.replaced) == ("straße", ("straße",))
    assert listed(own) == [("straße", "user")]


def test_a_replaced_skill_is_wholly_another_one(own: SkillStore) -> None:
    own.import_(bundle(old_txt=b"old"))
    before = own.revision()
    report = own.import_(bundle(body="Other.", new_txt=b"new"), replace=True)
    assert report.replaced == ("pdf",)
    assert sorted(files_of(own, "pdf")) == ["SKILL.md", "new.txt"]
    assert own.revision() != before


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (bundle("taken"), Conflict),
        (bundle("csv"), Conflict),
        (build_single_bundle({"SKILL.md": b"# Nothing\n"}, "broken"), SkillRejected),
    ],
    ids=["taken", "twice", "broken"],
)
def test_of_several_all_are_imported_or_none(
    own: SkillStore, second: Bundle, error: type[SkillhallError]
) -> None:
    own.add("taken", "Taken", "Is there.")
    with pytest.raises(error):
        own.import_([bundle("csv"), second])
    assert listed(own) == [("taken", "user")]


def test_system_skills_are_read_only_and_their_ids_taken(own: SkillStore, system: Path) -> None:
    make_skill(system, "pdf")
    with pytest.raises(Conflict):
        own.add("pdf", "pdf", "Mine.")
    with pytest.raises(ReadOnly):
        own.import_(bundle("pdf"), replace=True)
    with pytest.raises(ReadOnly):
        own.delete("pdf")
    assert listed(own) == [("pdf", "system")]


def test_a_user_skill_comes_after_the_system_skill_of_its_id(own: SkillStore, system: Path) -> None:
    own.add("pdf", "pdf", "Mine.")
    before = own.revision()
    make_skill(system, "pdf")
    assert own.revision() != before
    assert listed(own) == [("pdf", "system")]
    own.delete("pdf", shadowed=True)
    assert own.catalog().shadowed == ()


def test_a_deleted_skill_is_gone(own: SkillStore) -> None:
    own.import_([bundle("pdf"), bundle("csv")])
    before = own.revision()
    own.delete("pdf")
    assert listed(own) == [("csv", "user")]
    assert own.revision() != before
    with pytest.raises(SkillNotFound) as raised:
        own.delete("cvs")
    assert raised.value.close == ("csv",)


Files = dict[str, tuple[bytes, int]]


def test_files_are_put_where_others_stand_and_taken_away(own: SkillStore) -> None:
    own.import_([bundle("pdf", old_txt=b"old"), bundle("csv")])
    skill_md = make_skill_md("pdf", "Reads.", "Other.")

    def decide(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        assert present["new"] is None
        assert present["pdf"] is not None
        assert present["pdf"].files["old.txt"].read() == b"old"
        files = {"SKILL.md": (skill_md, 0o644), "run.sh": (b"#!", 0o755)}
        return {"pdf": files, "csv": None, "new": files}

    before = own.revision()
    own.rewrite(["pdf", "csv", "new"], decide)
    assert listed(own) == [("new", "user"), ("pdf", "user")]
    assert files_of(own, "pdf") == {"SKILL.md": (skill_md, False), "run.sh": (b"#!", True)}
    assert own.revision() != before


def test_who_decides_may_refuse_and_nothing_changes(own: SkillStore) -> None:
    own.import_(bundle("pdf"))
    before = own.revision(), files_of(own, "pdf")

    def refuse(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        raise SkillNotFound("pdf", [*present])

    with pytest.raises(SkillNotFound):
        own.rewrite(["pdf"], refuse)
    assert (own.revision(), files_of(own, "pdf")) == before


def test_of_many_who_decide_each_sees_what_the_one_before_left(own: SkillStore) -> None:
    own.import_(bundle("pdf", count_txt=b"0"))

    def count(present: Mapping[str, Bundle | None]) -> Mapping[str, Files | None]:
        assert present["pdf"] is not None
        files = {path: (file.read(), 0o644) for path, file in present["pdf"].files.items()}
        files["count.txt"] = b"%d" % (int(files["count.txt"][0]) + 1), 0o644
        return {"pdf": files}

    with ThreadPoolExecutor(4) as crowd:
        for done in [crowd.submit(own.rewrite, ["pdf"], count) for _ in range(8)]:
            done.result()
    assert files_of(own, "pdf")["count.txt"][0] == b"8"


def test_deleting_the_id_of_a_system_skill_leaves_the_user_skill_that_it_shadows(
    own: SkillStore, system: Path
) -> None:
    own.import_(bundle(body="Mine."))
    make_skill(system, "pdf", data=make_skill_md("pdf", "Shipped."))
    with pytest.raises(ReadOnly) as refused:
        own.delete("pdf")
    assert refused.value.variant == "shadows"
    assert own.files("pdf") is not None
    own.delete("pdf", shadowed=True)
    assert own.files("pdf") is None
    with pytest.raises(SkillNotFound):
        own.delete("pdf", shadowed=True)


def test_only_a_shadowed_skill_is_deleted_as_one(own: SkillStore) -> None:
    own.import_(bundle())
    with pytest.raises(SkillNotFound):
        own.delete("pdf", shadowed=True)
    assert own.files("pdf") is not None
