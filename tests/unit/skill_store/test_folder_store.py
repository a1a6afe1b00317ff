"""Skill store of one run directory, on a real disk."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillhall._internal.render.listing import LOCAL_INTRO
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.input_checks import SkillSummary
from skillhall._internal.skill_store.shipped_skills import read_shipped_skills
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from skillhall._internal.sources.opener import open_source
from skillhall.errors import (
    ArchiveRejected,
    Conflict,
    ReadOnly,
    SkillNotFound,
    SkillRejected,
    SourceRejected,
    TooLarge,
    UnsafePath,
)
from tests.support.bundles import build_single_bundle
from tests.support.skills import make_skill, make_skill_md

PICTURE = bytes(range(256))


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def store(run_directory: Path) -> FolderStore:
    return FolderStore(run_directory)


@pytest.fixture
def user(run_directory: Path) -> Path:
    return run_directory / ".agents" / "skills"


@pytest.fixture
def system(run_directory: Path) -> Path:
    return run_directory / ".agents" / "sys.skills"


def ids(store: FolderStore) -> list[str]:
    return [item.id for item in store.list().items]


def bundle(name: str = "pdf", **files: bytes) -> Bundle:
    named = {path.replace("__", "/").replace("_", "."): data for path, data in files.items()}
    return build_single_bundle({"SKILL.md": make_skill_md(name), **named}, name)


def tree(folder: Path) -> Mapping[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# list


def test_store_without_folders_is_empty(store: FolderStore, run_directory: Path) -> None:
    assert store.list() == ((), ())
    assert store.prompt_block() == ""
    assert list(run_directory.iterdir()) == []


def test_system_skills_come_first_and_shadow_user_skills(
    store: FolderStore, user: Path, system: Path
) -> None:
    make_skill(user, "alpha", data=make_skill_md("Alpha!", "Mine: all of it."))
    make_skill(user, "pdf", data=make_skill_md("pdf", "Mine."))
    make_skill(system, "pdf", data=make_skill_md("pdf", "Theirs."))
    listing = store.list()
    assert listing.items == (
        SkillSummary("pdf", "pdf", "Theirs.", "system"),
        SkillSummary("alpha", "Alpha!", "Mine: all of it.", "user"),
    )
    assert [judged.finding.code for judged in listing.findings] == ["shadowed"]


def test_skill_without_name_or_description_is_rejected(store: FolderStore, user: Path) -> None:
    make_skill(user, "broken", data=b"# Nothing\n")
    make_skill(user, "half", data=make_skill_md("half", None))
    assert ids(store) == []
    assert [judged.effect for judged in store.list().findings] == ["reject", "reject"]


def test_prompt_block_lists_skills_that_are_not_hidden(store: FolderStore, user: Path) -> None:
    make_skill(user, "pdf", data=make_skill_md("PDF", "Reads\nPDF."))
    make_skill(user, "quiet", data=make_skill_md("quiet", disable_model_invocation="true"))
    line = "- id: pdf; name: PDF; description: Reads PDF."
    assert store.prompt_block() == f"{LOCAL_INTRO}\n{line}"
    assert "quiet" in ids(store)


# add


def test_added_skill_is_listed(store: FolderStore, user: Path) -> None:
    item = store.add(" My Notes!", "My notes", 'Takes "notes": all.', "# Steps\n\nWrite.\n")
    assert item == SkillSummary("my-notes", "My notes", 'Takes "notes": all.', "user")
    assert store.list().items == (item,)
    assert (user / "my-notes" / "SKILL.md").read_bytes().endswith(b"---\n# Steps\n\nWrite.\n")


@pytest.mark.parametrize(
    "identity",
    ["", ".", "..", "...", "~", "../x", "a/b", "a\\b", "nul\0", "new\nline", "con", "LPT1", "-"],
)
def test_unsafe_id_is_rejected(store: FolderStore, run_directory: Path, identity: str) -> None:
    with pytest.raises(UnsafePath):
        store.add(identity, "Name", "Description.")
    assert list(run_directory.iterdir()) == []


def test_too_long_id_is_rejected(store: FolderStore) -> None:
    with pytest.raises(UnsafePath, match="200 bytes"):
        store.add("\U00020000" * 64, "Name", "Description.")


@pytest.mark.parametrize(
    ("text", "expected"), [("PDF_Tools", "pdf-tools"), ("report v1. ", "report-v1"), ("É", "é")]
)
def test_id_is_slugified(store: FolderStore, text: str, expected: str) -> None:
    assert store.add(text, "Name", "Description.").id == expected
    assert ids(store) == [expected]


@pytest.mark.parametrize("existing", ["pdf", "PDF", "e\u0301", "ﬁles"])
@pytest.mark.parametrize("folder", ["skills", "sys.skills"])
def test_taken_id_is_rejected_on_any_file_system(
    store: FolderStore, run_directory: Path, folder: str, existing: str
) -> None:
    make_skill(run_directory / ".agents" / folder, existing)
    before = tree(run_directory)
    with pytest.raises(Conflict):
        store.add(existing, "Name", "Description.")
    assert tree(run_directory) == before


@pytest.mark.parametrize(
    ("name", "description"),
    [("", "D."), ("  ", "D."), ("N", ""), ("N", " \n"), ("two\nlines", "D."), ("a\u2028b", "D.")],
)
def test_invalid_name_or_description_is_rejected(
    store: FolderStore, run_directory: Path, name: str, description: str
) -> None:
    with pytest.raises(SkillRejected):
        store.add("pdf", name, description)
    assert list(run_directory.iterdir()) == []


def test_long_description_is_not_truncated(store: FolderStore) -> None:
    store.add("pdf", "pdf", "x" * 5000)
    assert store.list().items[0].description == "x" * 5000


def test_linked_skills_folder_is_not_written(
    store: FolderStore, run_directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run_directory / ".agents").mkdir()
    (run_directory / ".agents" / "skills").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath, match="'skills' is a link"):
        store.add("pdf", "pdf", "Reads.")
    assert list((tmp_path / "elsewhere").iterdir()) == []


# import


def test_import_preserves_bytes_and_executable_bits(
    store: FolderStore, user: Path, tmp_path: Path
) -> None:
    source = make_skill(tmp_path, "PDF_Tools", files={"a.png": PICTURE, "s/run.sh": b"#!/bin/sh\n"})
    (source / "s" / "run.sh").chmod(0o4777)
    report = store.import_(open_source(str(source), Settings(str(tmp_path), "/nowhere")).bundles)
    assert [(item.id, item.name) for item in report.imported] == [("pdf-tools", "PDF_Tools")]
    assert tree(user / "pdf-tools") == tree(source)
    assert (user / "pdf-tools" / "s" / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert not os.access(user / "pdf-tools" / "a.png", os.X_OK)


def test_import_accepts_an_explicit_id(store: FolderStore) -> None:
    assert store.import_(bundle("pdf"), "Other One").imported[0].id == "other-one"
    with pytest.raises(UnsafePath):
        store.import_(bundle("pdf"), "../x")


def test_import_of_several_skills_with_one_id_is_rejected(store: FolderStore) -> None:
    with pytest.raises(SourceRejected, match="2 skills"):
        store.import_([bundle("a"), bundle("b")], "one")
    with pytest.raises(Conflict):
        store.import_([bundle("a"), bundle("A")])
    assert ids(store) == []


def test_import_replaces_a_skill_only_with_replace(store: FolderStore, user: Path) -> None:
    make_skill(user, "pdf", data=make_skill_md("pdf", "Old."), files={"old.md": b"old"})
    before = tree(user)
    with pytest.raises(Conflict):
        store.import_([bundle("new"), bundle("pdf")])
    assert tree(user) == before
    report = store.import_([bundle("new"), bundle("pdf")], replace=True)
    assert report.replaced == ("pdf",)
    assert tree(user / "pdf") == {"SKILL.md": make_skill_md("pdf")}
    assert ids(store) == ["new", "pdf"]


def test_import_replaces_a_skill_whose_id_differs_in_case(store: FolderStore, user: Path) -> None:
    make_skill(user, "PDF", data=make_skill_md("PDF", "Old."))
    assert store.import_(bundle("pdf"), replace=True).imported[0].id == "PDF"
    assert ids(store) == ["PDF"]


def test_import_does_not_replace_a_system_skill(
    store: FolderStore, system: Path, user: Path
) -> None:
    make_skill(system, "pdf")
    with pytest.raises(Conflict):
        store.import_(bundle("pdf"))
    with pytest.raises(ReadOnly, match="System skills are read-only"):
        store.import_(bundle("pdf"), replace=True)
    assert tree(user) == {}


def test_import_with_one_invalid_skill_changes_nothing(store: FolderStore, user: Path) -> None:
    make_skill(user, "pdf")
    before = tree(user)
    broken = build_single_bundle({"SKILL.md": b"---\nname: pdf\n---\n"}, "pdf")
    with pytest.raises(SkillRejected, match="'description' is missing"):
        store.import_([bundle("fine"), broken], replace=True)
    assert tree(user) == before


@pytest.mark.parametrize("bundles", [[], [Bundle("pdf", {})]])
def test_import_without_skill_md_is_rejected(store: FolderStore, bundles: list[Bundle]) -> None:
    with pytest.raises(SkillRejected, match=r"No SKILL\.md found"):
        store.import_(bundles)


def test_import_reports_skipped_files(store: FolderStore, tmp_path: Path) -> None:
    source = make_skill(tmp_path, "pdf")
    (source / "link.md").symlink_to("SKILL.md")
    report = store.import_(open_source(str(source), Settings(str(tmp_path), "/nowhere")).bundles)
    assert [(f.finding.code, f.finding.path) for f in report.findings] == [
        ("file-left-out", "pdf/link.md")
    ]


# files of a folder picker


def test_folder_of_picked_files_names_the_skill(store: FolderStore, user: Path) -> None:
    picked = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a/b.png": PICTURE, "pdf/.DS_Store": b"x"}
    store.import_(build_single_bundle(picked, "upload"))
    assert tree(user) == {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a/b.png": PICTURE}


def test_picked_files_without_folder_use_the_given_name() -> None:
    assert build_single_bundle({"SKILL.md": make_skill_md()}, "upload").folder == "upload"


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../x", "C:/x", "a\\x", "nul\0", "CON", "skill.MD", "\udcff"]
)
def test_picked_files_with_an_unsafe_path_are_rejected(path: str) -> None:
    with pytest.raises(ArchiveRejected):
        build_single_bundle({"SKILL.md": make_skill_md(), path: b"x"}, "upload")


def test_picked_files_beyond_the_limits_are_rejected() -> None:
    with pytest.raises(TooLarge):
        build_single_bundle(
            {"SKILL.md": make_skill_md(), "x": b"x" * (MAX_FILE_SIZE + 1)}, "upload"
        )
    many = {f"{number}": b"" for number in range(2001)}
    with pytest.raises(TooLarge):
        build_single_bundle(many, "upload")


def test_picked_files_without_skill_are_rejected() -> None:
    with pytest.raises(ArchiveRejected, match=r"No SKILL\.md found"):
        build_single_bundle({"README.md": b"x"}, "upload")


# delete


def test_delete_removes_all_files_of_a_skill(store: FolderStore, user: Path) -> None:
    make_skill(user, "pdf", files={"a/b.md": b"x"})
    make_skill(user, "other")
    store.delete("pdf")
    assert [path.name for path in user.iterdir()] == ["other"]


def test_delete_rejects_a_system_skill(store: FolderStore, system: Path) -> None:
    make_skill(system, "pdf")
    with pytest.raises(ReadOnly, match="System skills are read-only"):
        store.delete("pdf")
    assert ids(store) == ["pdf"]


def test_delete_rejects_a_broken_user_skill_that_is_shadowed(
    store: FolderStore, system: Path, user: Path
) -> None:
    make_skill(system, "pdf")
    make_skill(user, "pdf", data=b"# Nothing\n")
    with pytest.raises(ReadOnly):
        store.delete("pdf")
    assert (user / "pdf").is_dir()
    store.delete("pdf", shadowed=True)
    assert not (user / "pdf").exists()


def test_delete_can_remove_a_shadowed_user_skill(
    store: FolderStore, system: Path, user: Path
) -> None:
    make_skill(system, "pdf")
    make_skill(user, "pdf")
    store.delete("pdf", shadowed=True)
    assert (system / "pdf").exists()
    assert not (user / "pdf").exists()


@pytest.mark.parametrize(
    "identity", ["pfd", "", ".", "..", "../skills/pdf", "pdf/", "PDF", "folder", "nul\0"]
)
def test_delete_of_an_unknown_id_raises_not_found(
    store: FolderStore, user: Path, identity: str
) -> None:
    make_skill(user, "pdf")
    (user / "folder").mkdir()
    before = tree(user)
    with pytest.raises(SkillNotFound):
        store.delete(identity)
    assert tree(user) == before
    assert (user / "folder").exists()


def test_delete_removes_a_broken_skill(store: FolderStore, user: Path) -> None:
    make_skill(user, "broken", data=b"# Nothing\n")
    store.delete("broken")
    assert list(user.iterdir()) == []


def test_delete_of_a_linked_skill_keeps_the_link_target(store: FolderStore, user: Path) -> None:
    make_skill(user / ".target", "pdf")
    (user / "pdf").symlink_to(".target/pdf")
    assert ids(store) == ["pdf"]
    store.delete("pdf")
    assert (user / ".target" / "pdf" / "SKILL.md").exists()
    assert not (user / "pdf").is_symlink()


# sweep, revision


def test_sweep_deletes_leftovers_and_restores_replaced_skills(
    store: FolderStore, user: Path, system: Path
) -> None:
    make_skill(user, ".skillhall-old-pdf", data=make_skill_md("pdf"))
    make_skill(user, ".skillhall-0123456789abcdef", data=make_skill_md("pdf"))
    make_skill(system, ".skillhall-0123456789abcdef", data=make_skill_md("pdf"))
    store.sweep()
    assert [path.name for path in user.iterdir()] == ["pdf"]
    assert list(system.iterdir()) == []


def test_sweep_of_a_missing_folder_creates_nothing(store: FolderStore, run_directory: Path) -> None:
    store.sweep()
    assert list(run_directory.iterdir()) == []


def test_revision_changes_only_with_skills(
    store: FolderStore, run_directory: Path, user: Path, system: Path
) -> None:
    revisions = [store.revision()]
    other = FolderStore(run_directory)
    for change in (
        lambda: other.add("pdf", "pdf", "Reads."),
        lambda: other.import_(bundle("new"), replace=True),
        lambda: other.import_(bundle("pdf"), replace=True),
        lambda: (user / "pdf" / "SKILL.md").write_bytes(make_skill_md(description="Reads PDF_")),
        lambda: (user / "pdf" / "SKILL.md").write_bytes(make_skill_md(description="Reads PDF!")),
        lambda: other.delete("new"),
        lambda: make_skill(system, "pdf"),
    ):
        change()
        revisions.append(store.revision())
        assert store.revision() == FolderStore(run_directory).revision() == revisions[-1]
    assert len(set(revisions)) == len(revisions)


def test_revision_notices_edits_with_equal_size_and_mtime(store: FolderStore, user: Path) -> None:
    file = make_skill(user, "pdf") / "SKILL.md"
    before = store.revision()
    long_ago = 1_000_000_000
    os.utime(file, (long_ago, long_ago))
    assert store.revision() == before
    file.write_bytes(file.read_bytes().replace(b"Reads", b"Draws"))
    os.utime(file, (long_ago, long_ago))
    assert store.revision() != before


# system skills


def test_shipped_skills_are_installed_only_once(store: FolderStore, system: Path) -> None:
    make_skill(system, "theirs")
    report = store.install_system_skills()
    assert report.written == ("checking-skills", "writing-skills")
    assert ids(store) == ["checking-skills", "theirs", "writing-skills"]
    inode = (system / "writing-skills").stat().st_ino
    assert store.install_system_skills().unchanged == report.written
    assert (system / "writing-skills").stat().st_ino == inode


def test_edited_shipped_skill_is_restored(store: FolderStore, system: Path) -> None:
    store.install_system_skills()
    (system / "writing-skills" / "more.md").write_bytes(b"x")
    (system / "writing-skills" / "references" / "example.md").unlink()
    assert store.install_system_skills().written == ("writing-skills",)
    assert tree(system / "writing-skills") == read_shipped_skills()["writing-skills"]


def test_foreign_skill_with_a_shipped_id_is_skipped(store: FolderStore, system: Path) -> None:
    make_skill(system, "writing-skills")
    before = tree(system)
    report = store.install_system_skills()
    assert report.skipped == ("writing-skills",)
    assert tree(system / "writing-skills") == {
        path.partition("/")[2]: data for path, data in before.items()
    }
