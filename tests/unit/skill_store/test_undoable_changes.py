"""Changes of user skills, and undoing them."""

from functools import partial
from pathlib import Path

import pytest

from skillhall._internal.skill.lossless_editor import SkillText
from skillhall._internal.skill_store.file_changes import NewFile, write_files
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall.errors import (
    EditRefused,
    NothingToUndo,
    SkillNotFound,
    SkillRejected,
    StaleVersionError,
)
from tests.support.actors import ACTOR
from tests.support.bundles import make_bundle
from tests.support.skills import make_skill, make_skill_md

TEXT = SkillText("pdf", "New words.", "New body.")


@pytest.fixture
def changes(tmp_path: Path) -> SkillStoreChanges:
    make_skill(tmp_path / "run/.agents/skills", "pdf", files={"a/run.sh": b"#!/bin/sh\n"})
    (tmp_path / "run/.agents/skills/pdf/a/run.sh").chmod(0o755)
    return SkillStoreChanges(FolderStore(tmp_path / "run"), str(tmp_path / "data"), actor=ACTOR)


def contents(changes: SkillStoreChanges) -> dict[str, bytes]:
    root = Path(changes.store.location) / "skills"
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def digest(changes: SkillStoreChanges) -> str:
    bundle = changes.store.files("pdf")
    assert bundle is not None
    return bundle.digest()


def test_edit_can_be_undone(changes: SkillStoreChanges) -> None:
    before = contents(changes)
    result = changes.edit("pdf", TEXT, digest(changes))
    assert result.skill.description == "New words."
    assert b"New body." in contents(changes)["pdf/SKILL.md"]
    undone = changes.undo(result.change_id)
    assert (undone.verb, [*undone.entries]) == ("update", ["pdf"])
    assert contents(changes) == before


def test_edit_of_a_changed_skill_is_rejected(changes: SkillStoreChanges) -> None:
    before = contents(changes)
    with pytest.raises(StaleVersionError) as error_info:
        changes.edit("pdf", TEXT, "sha256:other")
    assert error_info.value.digest == digest(changes)
    assert contents(changes) == before


@pytest.mark.parametrize(
    ("text", "error"),
    [(SkillText("pdf", "", "x"), SkillRejected), (SkillText("a\nb", "c", "x"), EditRefused)],
)
def test_edit_to_an_invalid_skill_is_rejected(
    changes: SkillStoreChanges, text: SkillText, error: type[Exception]
) -> None:
    before = contents(changes)
    with pytest.raises(error):
        changes.edit("pdf", text, digest(changes))
    assert contents(changes) == before


def test_edit_of_a_missing_skill_is_rejected(changes: SkillStoreChanges) -> None:
    with pytest.raises(SkillNotFound):
        changes.edit("no", TEXT, "")


def test_undone_deletion_restores_executables(changes: SkillStoreChanges) -> None:
    before = contents(changes)
    change = changes.delete("pdf")
    assert contents(changes) == {}
    changes.undo(change)
    assert contents(changes) == before
    script = Path(changes.store.location) / "skills/pdf/a/run.sh"
    assert script.stat().st_mode & 0o111


def test_several_skills_are_deleted_and_restored_together(changes: SkillStoreChanges) -> None:
    make_skill(Path(changes.store.location) / "skills", "csv")
    before = contents(changes)
    with pytest.raises(SkillNotFound):
        changes.delete_all(["csv", "gone"])
    assert contents(changes) == before
    change = changes.delete_all(["csv", "pdf"])
    assert contents(changes) == {}
    assert [*changes.undo(change).entries] == ["csv", "pdf"]
    assert contents(changes) == before


def test_replacing_and_adding_imports_can_be_undone(changes: SkillStoreChanges) -> None:
    before = contents(changes)
    bundle = make_bundle({"SKILL.md": make_skill_md("pdf", "Other.")})
    _, change = changes.import_([bundle], "pdf", replace=True)
    assert contents(changes) == {"pdf/SKILL.md": make_skill_md("pdf", "Other.")}
    changes.undo(change)
    assert contents(changes) == before
    _, added = changes.import_([bundle], "new")
    changes.undo(added)
    assert contents(changes) == before


def test_undo_is_rejected_after_a_later_change(changes: SkillStoreChanges) -> None:
    result = changes.edit("pdf", TEXT, digest(changes))
    changes.edit("pdf", TEXT._replace(body="Newer."), digest(changes))
    with pytest.raises(StaleVersionError):
        changes.undo(result.change_id)
    assert b"Newer." in contents(changes)["pdf/SKILL.md"]


def test_change_can_be_undone_only_once(changes: SkillStoreChanges) -> None:
    change = changes.delete("pdf")
    changes.undo(change)
    with pytest.raises(NothingToUndo):
        changes.undo(change)
    with pytest.raises(NothingToUndo):
        changes.undo("../../etc")


def test_failed_change_is_not_recorded(changes: SkillStoreChanges) -> None:
    with pytest.raises(SkillNotFound):
        changes.delete("no")
    broken = make_bundle({"SKILL.md": b"---\nname: x\n---\n"})
    with pytest.raises(SkillRejected):
        changes.import_([broken])
    history = Path(changes.data_directory) / "history"
    assert not list(history.rglob("*.json")) if history.exists() else True


def test_changes_without_data_directory_cannot_be_undone(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf")
    assert SkillStoreChanges(FolderStore(tmp_path), "", actor=ACTOR).delete("pdf") == ""


def test_deletion_of_a_skill_with_links_cannot_be_undone(
    changes: SkillStoreChanges, tmp_path: Path
) -> None:
    (tmp_path / "run/.agents/skills/pdf/link").symlink_to(tmp_path)
    assert changes.delete("pdf") == ""
    assert contents(changes) == {}


def test_change_of_files_can_be_undone(changes: SkillStoreChanges) -> None:
    before = contents(changes)
    edit = partial(write_files, new_files=[NewFile("a/run.sh", b"new"), NewFile("b.md", b"b")])
    result = changes.change_files("pdf", edit, digest(changes))
    assert contents(changes) == {**before, "pdf/a/run.sh": b"new", "pdf/b.md": b"b"}
    root = Path(changes.store.location) / "skills/pdf"
    assert (root / "a/run.sh").stat().st_mode & 0o777 == 0o755
    changes.undo(result.change_id)
    assert contents(changes) == before
