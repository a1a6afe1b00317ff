"""The skills of one run directory, on a real disk."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillhall._internal.render.local_listing import INTRODUCTION
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.input_checks import StoredSkill
from skillhall._internal.skill_store.shipped_skills import read_shipped_skills
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from skillhall._internal.sources.opener import build_single_bundle, open_source
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
from tests.support.skills import make_skill, make_skill_md

PICTURE = bytes(range(256))


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def local(run_directory: Path) -> FolderStore:
    return FolderStore(run_directory)


@pytest.fixture
def user(run_directory: Path) -> Path:
    return run_directory / ".agents" / "skills"


@pytest.fixture
def system(run_directory: Path) -> Path:
    return run_directory / ".agents" / "sys.skills"


def ids(local: FolderStore) -> list[str]:
    return [item.id for item in local.list().items]


def bundle(name: str = "pdf", **files: bytes) -> Bundle:
    named = {path.replace("__", "/").replace("_", "."): data for path, data in files.items()}
    return build_single_bundle({"SKILL.md": make_skill_md(name), **named}, name)


def tree(folder: Path) -> Mapping[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


# list


def test_missing_folders_hold_no_skills(local: FolderStore, run_directory: Path) -> None:
    assert local.list() == ((), ())
    assert local.prompt_block() == ""
    assert list(run_directory.iterdir()) == []


def test_system_skills_come_first_and_win(local: FolderStore, user: Path, system: Path) -> None:
    make_skill(user, "alpha", data=make_skill_md("Alpha!", "Mine: all of it."))
    make_skill(user, "pdf", data=make_skill_md("pdf", "Mine."))
    make_skill(system, "pdf", data=make_skill_md("pdf", "Theirs."))
    listing = local.list()
    assert listing.items == (
        StoredSkill("pdf", "pdf", "Theirs.", "system"),
        StoredSkill("alpha", "Alpha!", "Mine: all of it.", "user"),
    )
    assert [found.finding.code for found in listing.findings] == ["shadowed"]


def test_a_folder_without_name_and_description_is_not_a_skill(
    local: FolderStore, user: Path
) -> None:
    make_skill(user, "broken", data=b"# Nothing\n")
    make_skill(user, "half", data=make_skill_md("half", None))
    assert ids(local) == []
    assert [found.effect for found in local.list().findings] == ["reject", "reject"]


def test_the_prompt_block_has_a_line_for_each_skill_that_a_model_may_know(
    local: FolderStore, user: Path
) -> None:
    make_skill(user, "pdf", data=make_skill_md("PDF", "Reads\nPDF."))
    make_skill(user, "quiet", data=make_skill_md("quiet", disable_model_invocation="true"))
    line = "- id: pdf; name: PDF; description: Reads PDF."
    assert local.prompt_block() == f"{INTRODUCTION}\n{line}"
    assert "quiet" in ids(local)


# add


def test_a_new_skill_is_there_at_once(local: FolderStore, user: Path) -> None:
    item = local.add(" My Notes!", "My notes", 'Takes "notes": all.', "# Steps\n\nWrite.\n")
    assert item == StoredSkill("my-notes", "My notes", 'Takes "notes": all.', "user")
    assert local.list().items == (item,)
    assert (user / "my-notes" / "SKILL.md").read_bytes().endswith(b"---\n# Steps\n\nWrite.\n")


@pytest.mark.parametrize(
    "identity",
    ["", ".", "..", "...", "~", "../x", "a/b", "a\\b", "nul\0", "new\nline", "con", "LPT1", "-"],
)
def test_an_id_that_is_no_safe_name_is_refused(
    local: FolderStore, run_directory: Path, identity: str
) -> None:
    with pytest.raises(UnsafePath):
        local.add(identity, "Name", "Description.")
    assert list(run_directory.iterdir()) == []


def test_an_id_too_long_for_a_disk_is_refused(local: FolderStore) -> None:
    with pytest.raises(UnsafePath, match="200 bytes"):
        local.add("\U00020000" * 64, "Name", "Description.")


@pytest.mark.parametrize(
    ("given", "expected"), [("PDF_Tools", "pdf-tools"), ("report v1. ", "report-v1"), ("É", "é")]
)
def test_an_id_is_slugged(local: FolderStore, given: str, expected: str) -> None:
    assert local.add(given, "Name", "Description.").id == expected
    assert ids(local) == [expected]


@pytest.mark.parametrize("standing", ["pdf", "PDF", "e\u0301", "ﬁles"])
@pytest.mark.parametrize("place", ["skills", "sys.skills"])
def test_an_id_that_is_taken_on_any_system_is_refused(
    local: FolderStore, run_directory: Path, place: str, standing: str
) -> None:
    make_skill(run_directory / ".agents" / place, standing)
    before = tree(run_directory)
    with pytest.raises(Conflict):
        local.add(standing, "Name", "Description.")
    assert tree(run_directory) == before


@pytest.mark.parametrize(
    ("name", "description"),
    [("", "D."), ("  ", "D."), ("N", ""), ("N", " \n"), ("two\nlines", "D."), ("a\u2028b", "D.")],
)
def test_a_name_is_one_line_and_both_texts_are_there(
    local: FolderStore, run_directory: Path, name: str, description: str
) -> None:
    with pytest.raises(SkillRejected):
        local.add("pdf", name, description)
    assert list(run_directory.iterdir()) == []


def test_a_long_description_is_not_cut(local: FolderStore) -> None:
    local.add("pdf", "pdf", "x" * 5000)
    assert local.list().items[0].description == "x" * 5000


def test_nothing_is_written_through_a_link(
    local: FolderStore, run_directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run_directory / ".agents").mkdir()
    (run_directory / ".agents" / "skills").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath, match="'skills' is a link"):
        local.add("pdf", "pdf", "Reads.")
    assert list((tmp_path / "elsewhere").iterdir()) == []


# import


def test_bytes_and_executable_bits_arrive_intact(
    local: FolderStore, user: Path, tmp_path: Path
) -> None:
    source = make_skill(tmp_path, "PDF_Tools", files={"a.png": PICTURE, "s/run.sh": b"#!/bin/sh\n"})
    (source / "s" / "run.sh").chmod(0o4777)
    report = local.import_(open_source(str(source), Settings(str(tmp_path), "/nowhere")).bundles)
    assert [(item.id, item.name) for item in report.imported] == [("pdf-tools", "PDF_Tools")]
    assert tree(user / "pdf-tools") == tree(source)
    assert (user / "pdf-tools" / "s" / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert not os.access(user / "pdf-tools" / "a.png", os.X_OK)


def test_a_person_may_give_the_id(local: FolderStore) -> None:
    assert local.import_(bundle("pdf"), "Other One").imported[0].id == "other-one"
    with pytest.raises(UnsafePath):
        local.import_(bundle("pdf"), "../x")


def test_an_id_stays_with_one_skill(local: FolderStore) -> None:
    with pytest.raises(SourceRejected, match="2 skills"):
        local.import_([bundle("a"), bundle("b")], "one")
    with pytest.raises(Conflict):
        local.import_([bundle("a"), bundle("A")])
    assert ids(local) == []


def test_a_skill_that_is_there_stays_unless_it_may_be_replaced(
    local: FolderStore, user: Path
) -> None:
    make_skill(user, "pdf", data=make_skill_md("pdf", "Old."), files={"old.md": b"old"})
    before = tree(user)
    with pytest.raises(Conflict):
        local.import_([bundle("new"), bundle("pdf")])
    assert tree(user) == before
    report = local.import_([bundle("new"), bundle("pdf")], replace=True)
    assert report.replaced == ("pdf",)
    assert tree(user / "pdf") == {"SKILL.md": make_skill_md("pdf")}
    assert ids(local) == ["new", "pdf"]


def test_a_skill_in_another_case_is_replaced_where_it_stands(
    local: FolderStore, user: Path
) -> None:
    make_skill(user, "PDF", data=make_skill_md("PDF", "Old."))
    assert local.import_(bundle("pdf"), replace=True).imported[0].id == "PDF"
    assert ids(local) == ["PDF"]


def test_a_system_skill_is_not_replaced(local: FolderStore, system: Path, user: Path) -> None:
    make_skill(system, "pdf")
    with pytest.raises(Conflict):
        local.import_(bundle("pdf"))
    with pytest.raises(ReadOnly, match="System skills are read-only"):
        local.import_(bundle("pdf"), replace=True)
    assert tree(user) == {}


def test_one_broken_skill_keeps_all_out_and_the_old_one_whole(
    local: FolderStore, user: Path
) -> None:
    make_skill(user, "pdf")
    before = tree(user)
    broken = build_single_bundle({"SKILL.md": b"---\nname: pdf\n---\n"}, "pdf")
    with pytest.raises(SkillRejected, match="there is no 'description'"):
        local.import_([bundle("fine"), broken], replace=True)
    assert tree(user) == before


@pytest.mark.parametrize("bundles", [[], [Bundle("pdf", {})]])
def test_a_source_without_skill_md_says_so(local: FolderStore, bundles: list[Bundle]) -> None:
    with pytest.raises(SkillRejected, match=r"No SKILL\.md found"):
        local.import_(bundles)


def test_what_was_left_out_is_a_finding(local: FolderStore, tmp_path: Path) -> None:
    source = make_skill(tmp_path, "pdf")
    (source / "link.md").symlink_to("SKILL.md")
    report = local.import_(open_source(str(source), Settings(str(tmp_path), "/nowhere")).bundles)
    assert [(f.finding.code, f.finding.path) for f in report.findings] == [
        ("file-left-out", "pdf/link.md")
    ]


# files of a folder picker


def test_the_folder_around_picked_files_names_the_skill(local: FolderStore, user: Path) -> None:
    picked = {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a/b.png": PICTURE, "pdf/.DS_Store": b"x"}
    local.import_(build_single_bundle(picked, "upload"))
    assert tree(user) == {"pdf/SKILL.md": make_skill_md("pdf"), "pdf/a/b.png": PICTURE}


def test_loose_files_are_named_after_the_whole() -> None:
    assert build_single_bundle({"SKILL.md": make_skill_md()}, "upload").folder == "upload"


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../x", "C:/x", "a\\x", "nul\0", "CON", "skill.MD", "\udcff"]
)
def test_picked_files_with_unsafe_paths_are_refused_together(path: str) -> None:
    with pytest.raises(ArchiveRejected):
        build_single_bundle({"SKILL.md": make_skill_md(), path: b"x"}, "upload")


def test_picked_files_have_limits() -> None:
    with pytest.raises(TooLarge):
        build_single_bundle(
            {"SKILL.md": make_skill_md(), "x": b"x" * (MAX_FILE_SIZE + 1)}, "upload"
        )
    many = {f"{number}": b"" for number in range(2001)}
    with pytest.raises(TooLarge):
        build_single_bundle(many, "upload")


def test_picked_files_hold_one_skill() -> None:
    with pytest.raises(ArchiveRejected, match=r"No SKILL\.md found"):
        build_single_bundle({"README.md": b"x"}, "upload")
    both = {f"{name}/SKILL.md": make_skill_md(name) for name in ("a", "b")}
    with pytest.raises(SourceRejected, match="several skills: a, b"):
        build_single_bundle(both, "upload")


# delete


def test_a_deleted_skill_is_gone_with_all_its_files(local: FolderStore, user: Path) -> None:
    make_skill(user, "pdf", files={"a/b.md": b"x"})
    make_skill(user, "other")
    local.delete("pdf")
    assert [path.name for path in user.iterdir()] == ["other"]


def test_a_system_skill_is_not_deleted(local: FolderStore, system: Path) -> None:
    make_skill(system, "pdf")
    with pytest.raises(ReadOnly, match="System skills are read-only"):
        local.delete("pdf")
    assert ids(local) == ["pdf"]


def test_a_broken_user_skill_with_the_id_of_a_system_skill_is_not_deleted_for_it(
    local: FolderStore, system: Path, user: Path
) -> None:
    make_skill(system, "pdf")
    make_skill(user, "pdf", data=b"# Nothing\n")
    with pytest.raises(ReadOnly):
        local.delete("pdf")
    assert (user / "pdf").is_dir()
    local.delete("pdf", shadowed=True)
    assert not (user / "pdf").exists()


def test_the_users_copy_of_a_system_skill_can_be_deleted(
    local: FolderStore, system: Path, user: Path
) -> None:
    make_skill(system, "pdf")
    make_skill(user, "pdf")
    local.delete("pdf", shadowed=True)
    assert (system / "pdf").exists()
    assert not (user / "pdf").exists()


@pytest.mark.parametrize(
    "identity", ["pfd", "", ".", "..", "../skills/pdf", "pdf/", "PDF", "folder", "nul\0"]
)
def test_what_is_no_user_skill_is_not_found(local: FolderStore, user: Path, identity: str) -> None:
    make_skill(user, "pdf")
    (user / "folder").mkdir()
    before = tree(user)
    with pytest.raises(SkillNotFound):
        local.delete(identity)
    assert tree(user) == before
    assert (user / "folder").exists()


def test_a_broken_skill_can_be_deleted(local: FolderStore, user: Path) -> None:
    make_skill(user, "broken", data=b"# Nothing\n")
    local.delete("broken")
    assert list(user.iterdir()) == []


def test_deleting_a_linked_skill_leaves_what_the_link_leads_to(
    local: FolderStore, user: Path
) -> None:
    make_skill(user / ".kept", "pdf")
    (user / "pdf").symlink_to(".kept/pdf")
    assert ids(local) == ["pdf"]
    local.delete("pdf")
    assert (user / ".kept" / "pdf" / "SKILL.md").exists()
    assert not (user / "pdf").is_symlink()


# sweep, revision


def test_a_sweep_clears_up_and_brings_back(local: FolderStore, user: Path, system: Path) -> None:
    make_skill(user, ".skillhall-old-pdf", data=make_skill_md("pdf"))
    make_skill(user, ".skillhall-0123456789abcdef", data=make_skill_md("pdf"))
    make_skill(system, ".skillhall-0123456789abcdef", data=make_skill_md("pdf"))
    local.sweep()
    assert [path.name for path in user.iterdir()] == ["pdf"]
    assert list(system.iterdir()) == []


def test_a_sweep_of_nothing_makes_nothing(local: FolderStore, run_directory: Path) -> None:
    local.sweep()
    assert list(run_directory.iterdir()) == []


def test_the_revision_changes_with_every_change_and_with_nothing_else(
    local: FolderStore, run_directory: Path, user: Path, system: Path
) -> None:
    seen = [local.revision()]
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
        seen.append(local.revision())
        assert local.revision() == FolderStore(run_directory).revision() == seen[-1]
    assert len(set(seen)) == len(seen)


def test_the_revision_notices_a_change_of_equal_length_in_settled_files(
    local: FolderStore, user: Path
) -> None:
    file = make_skill(user, "pdf") / "SKILL.md"
    before = local.revision()
    long_ago = 1_000_000_000
    os.utime(file, (long_ago, long_ago))
    assert local.revision() == before
    file.write_bytes(file.read_bytes().replace(b"Reads", b"Draws"))
    os.utime(file, (long_ago, long_ago))
    assert local.revision() != before


# system skills


def test_shipped_skills_are_installed_once(local: FolderStore, system: Path) -> None:
    make_skill(system, "theirs")
    report = local.install_system_skills()
    assert report.written == ("checking-skills", "writing-skills")
    assert ids(local) == ["checking-skills", "theirs", "writing-skills"]
    inode = (system / "writing-skills").stat().st_ino
    assert local.install_system_skills().unchanged == report.written
    assert (system / "writing-skills").stat().st_ino == inode


def test_an_edited_shipped_skill_is_restored(local: FolderStore, system: Path) -> None:
    local.install_system_skills()
    (system / "writing-skills" / "more.md").write_bytes(b"x")
    (system / "writing-skills" / "references" / "example.md").unlink()
    assert local.install_system_skills().written == ("writing-skills",)
    assert tree(system / "writing-skills") == read_shipped_skills()["writing-skills"]


def test_somebody_elses_skill_of_the_same_id_is_left_alone(
    local: FolderStore, system: Path
) -> None:
    make_skill(system, "writing-skills")
    before = tree(system)
    report = local.install_system_skills()
    assert report.skipped == ("writing-skills",)
    assert tree(system / "writing-skills") == {
        path.partition("/")[2]: data for path, data in before.items()
    }
