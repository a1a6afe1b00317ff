"""Installed skills: add, update, verify, remove and roll back."""

import json
from pathlib import Path

import pytest

from skillhall._internal.installer.agent_folders import InstallTargets
from skillhall._internal.installer.install import install
from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import list_changes, roll_back
from skillhall._internal.installer.update import UpdateStatus, find_outdated, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.sources.opener import open_source
from skillhall.errors import Edited, NotInstalledError, SkillNotFound, UnsafePath, UnsavedFilesError
from tests.support.http_server import ResponseWriter, respond, run_http_server
from tests.support.projects import ProjectFixture, make_project, read_tree
from tests.support.skills import make_skill_md

PDF = ".agents/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    bench = make_project(tmp_path)
    bench.skill("pdf", "one\ntwo\nthree\nfour\nfive\n")
    bench.write("pdf/scripts/run.sh", "#!/bin/sh\n", executable=True)
    return bench


def text(bench: ProjectFixture, path: str) -> str:
    return bench.installed_path(path).read_text(encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_lock_file_records_source_and_files(bench: ProjectFixture) -> None:
    bench.add()
    entry = read_lock(str(bench.project)).entries[PDF]
    assert (entry.name, entry.path) == ("pdf", "pdf")
    assert entry.source == str(bench.source)
    assert [(file.path, file.mode) for file in entry.files] == [
        ("SKILL.md", "100644"),
        ("scripts/run.sh", "100755"),
    ]


def test_several_agents_get_links_to_one_copy(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf")
    link = bench.installed_path(".claude/skills/pdf")
    assert str(link.readlink()) == "../../.agents/skills/pdf"
    assert read_tree(link) == read_tree(bench.source / "pdf")
    assert bench.installed_path(".windsurf/skills/pdf").is_symlink()


def test_single_agent_gets_a_copy(bench: ProjectFixture) -> None:
    bench.add("claude-code")
    assert not bench.installed_path(".claude/skills/pdf").is_symlink()
    assert not bench.installed_path(".agents").exists()


def test_copy_option_creates_copies(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    assert read_tree(bench.installed_path(".claude/skills")) == read_tree(
        bench.installed_path(".windsurf/skills")
    )
    assert not bench.installed_path(".windsurf/skills/pdf").is_symlink()


def test_agent_folder_linked_to_the_universal_folder_gets_no_link(
    bench: ProjectFixture,
) -> None:
    bench.installed_path(".agents/skills").mkdir(parents=True)
    bench.installed_path(".claude").mkdir()
    bench.installed_path(".claude/skills").symlink_to("../.agents/skills")
    bench.add("claude-code", "windsurf")
    assert not bench.installed_path(PDF).is_symlink()
    assert read_lock(str(bench.project)).entries[PDF].get_target_paths("link") == [
        ".windsurf/skills/pdf"
    ]


def test_link_out_of_the_project_is_not_followed(bench: ProjectFixture) -> None:
    outside = bench.folder / "outside"
    outside.mkdir()
    bench.installed_path(".agents").mkdir()
    bench.installed_path(".agents/skills").symlink_to(outside)
    with pytest.raises(UnsafePath):
        bench.add()
    assert list(outside.iterdir()) == []


def test_installed_skill_can_be_added_for_another_agent(bench: ProjectFixture) -> None:
    bench.add("universal")
    report = bench.add("universal", "claude-code")
    assert [skill.id for skill in report.added] == ["pdf"]
    assert bench.installed_path(".claude/skills/pdf").is_symlink()


def test_user_skill_is_overwritten_only_on_request_and_restored(
    bench: ProjectFixture,
) -> None:
    own = bench.installed_path(PDF)
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine", encoding="utf-8")
    assert [skill.reason for skill in bench.add().skipped] == ["exists"]
    assert text(bench, f"{PDF}/SKILL.md") == "mine"
    bench.add(overwrite=True)
    roll_back(bench.installer_project, "pdf")
    assert read_tree(own) == {"SKILL.md": (b"mine", False)}
    assert read_lock(str(bench.project)).entries == {}


@pytest.mark.parametrize("thing", ["link", ".git"])
def test_unrestorable_content_is_not_replaced(bench: ProjectFixture, thing: str) -> None:
    bench.add()
    if thing == "link":
        bench.installed_path(f"{PDF}/link").symlink_to("/etc/hostname")
    else:
        bench.installed_path(f"{PDF}/.git").mkdir()
    before = read_tree(bench.project)
    with pytest.raises(UnsavedFilesError):
        bench.add(overwrite=True)
    assert read_tree(bench.project) == before


def test_user_skills_are_locked_in_the_home_folder(bench: ProjectFixture) -> None:
    bench.add("claude-code", "codex", user=True)
    home = bench.folder / "home"
    assert (home / ".claude/skills/pdf").is_symlink()
    assert PDF in read_lock(str(home / ".agents"), ".skillhall-lock.json").entries


def test_npx_lock_is_updated(bench: ProjectFixture) -> None:
    bench.add()
    npx_lock = json.loads(text(bench, "skills-lock.json"))
    assert npx_lock["skills"]["pdf"]["sourceType"] == "local"
    remove(bench.installer_project, ["pdf"])
    assert json.loads(text(bench, "skills-lock.json"))["skills"] == {}


def test_skills_are_installed_from_an_npx_lock(bench: ProjectFixture) -> None:
    bench.add()
    npx_lock = text(bench, "skills-lock.json")
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skills-lock.json").write_text(npx_lock, encoding="utf-8")
    assert [result.status for result in install_locked(bench.installer_project, frozen=True)] == [
        "installed"
    ]
    assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")


def test_update_replaces_unedited_files(bench: ProjectFixture) -> None:
    bench.add()
    bench.skill("pdf", "new\n")
    bench.write("pdf/more.md", "more")
    (bench.source / "pdf/scripts/run.sh").unlink()
    assert [result.status for result in find_outdated(bench.installer_project)] == [
        UpdateStatus.OUTDATED
    ]
    assert [result.status for result in update(bench.installer_project)] == [UpdateStatus.UPDATED]
    assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")
    assert [result.status for result in find_outdated(bench.installer_project)] == [
        UpdateStatus.CURRENT
    ]


def test_update_merges_edits_of_other_lines(bench: ProjectFixture) -> None:
    bench.add()
    edit(bench.installed_path(f"{PDF}/SKILL.md"), "one\n", "ONE\n")
    bench.installed_path(f"{PDF}/own.md").write_text("own", encoding="utf-8")
    edit(bench.source / "pdf/SKILL.md", "five\n", "FIVE\n")
    result = update(bench.installer_project)[0]
    assert result.status is UpdateStatus.UPDATED
    assert "ONE\ntwo\nthree\nfour\nFIVE\n" in text(bench, f"{PDF}/SKILL.md")
    assert text(bench, f"{PDF}/own.md") == "own"
    assert {(outcome.path, outcome.kind.value) for outcome in result.outcomes} >= {
        ("SKILL.md", "merged"),
        ("own.md", "kept"),
    }


@pytest.mark.parametrize(("choice", "expected"), [("mine", "MINE"), ("theirs", "THEIRS")])
def test_conflict_changes_nothing_without_a_choice(
    bench: ProjectFixture, choice: str, expected: str
) -> None:
    bench.add()
    edit(bench.installed_path(f"{PDF}/SKILL.md"), "three\n", "MINE\n")
    edit(bench.source / "pdf/SKILL.md", "three\n", "THEIRS\n")
    bench.write("pdf/more.md", "more")
    before = read_tree(bench.project)
    result = update(bench.installer_project)[0]
    assert result.status is UpdateStatus.CONFLICT
    assert [outcome.path for outcome in result.outcomes if outcome.kind == "conflict"] == [
        "SKILL.md"
    ]
    assert read_tree(bench.project) == before
    assert update(bench.installer_project, conflicts=choice)[0].status is UpdateStatus.UPDATED  # type: ignore[arg-type] # parametrized
    assert expected in text(bench, f"{PDF}/SKILL.md")
    assert text(bench, f"{PDF}/more.md") == "more"
    roll_back(bench.installer_project, "pdf")
    assert "MINE" in text(bench, f"{PDF}/SKILL.md")


def test_update_merges_each_copy_with_its_edits(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    edit(bench.installed_path(".windsurf/skills/pdf/SKILL.md"), "one\n", "ONE\n")
    edit(bench.source / "pdf/SKILL.md", "five\n", "FIVE\n")
    update(bench.installer_project)
    assert "one\ntwo\nthree\nfour\nFIVE\n" in text(bench, ".claude/skills/pdf/SKILL.md")
    assert "ONE\ntwo\nthree\nfour\nFIVE\n" in text(bench, ".windsurf/skills/pdf/SKILL.md")


def test_update_rejects_a_broken_skill(bench: ProjectFixture) -> None:
    bench.add()
    before = read_tree(bench.project)
    (bench.source / "pdf/SKILL.md").write_text("no frontmatter", encoding="utf-8")
    assert update(bench.installer_project)[0].status is UpdateStatus.REJECTED
    assert read_tree(bench.project) == before


def test_missing_source_fails_only_its_skill(bench: ProjectFixture) -> None:
    bench.skill("notes")
    bench.add()
    (bench.source / "pdf/SKILL.md").unlink()
    edit(bench.source / "notes/SKILL.md", "Do it.", "Do more.")
    results = {result.key: result.status for result in update(bench.installer_project)}
    assert results == {".agents/skills/notes": UpdateStatus.UPDATED, PDF: UpdateStatus.FAILED}


def test_update_can_be_rolled_back(bench: ProjectFixture) -> None:
    bench.add()
    before = read_tree(bench.project)
    bench.skill("pdf", "new\n")
    update(bench.installer_project)
    roll_back(bench.installer_project, "pdf")
    assert read_tree(bench.project) == before
    roll_back(bench.installer_project, "pdf")
    assert not bench.installed_path(PDF).exists()


def test_rollback_of_an_edited_skill_needs_force(bench: ProjectFixture) -> None:
    bench.add()
    bench.skill("pdf", "new\n")
    update(bench.installer_project)
    edit(bench.installed_path(f"{PDF}/SKILL.md"), "new", "edited")
    with pytest.raises(Edited, match=r"SKILL\.md"):
        roll_back(bench.installer_project, "pdf")
    roll_back(bench.installer_project, "pdf", force=True)
    assert "one" in text(bench, f"{PDF}/SKILL.md")


def test_verify_reports_every_difference(bench: ProjectFixture) -> None:
    bench.add("claude-code", "universal")
    assert all(result.is_intact for result in verify(bench.installer_project))
    edit(bench.installed_path(f"{PDF}/SKILL.md"), "one", "two")
    bench.installed_path(f"{PDF}/scripts/run.sh").unlink()
    bench.installed_path(f"{PDF}/own.md").write_text("own", encoding="utf-8")
    bench.installed_path(".claude/skills/pdf").unlink()
    first, link = verify(bench.installer_project, ["pdf"])
    assert (first.changed, first.missing, first.extra) == (
        ("SKILL.md",),
        ("scripts/run.sh",),
        ("own.md",),
    )
    assert (link.place, link.is_there) == (".claude/skills/pdf", False)


def test_removal_is_complete_and_can_be_rolled_back(bench: ProjectFixture) -> None:
    bench.add("claude-code", "universal")
    before = read_tree(bench.project)
    assert remove(bench.installer_project, ["pdf"]) == [PDF]
    assert not bench.installed_path(PDF).exists()
    assert not bench.installed_path(".claude/skills/pdf").is_symlink()
    roll_back(bench.installer_project, "pdf")
    assert read_tree(bench.project) == before
    assert bench.installed_path(".claude/skills/pdf").is_symlink()


def test_removal_of_an_edited_skill_needs_force(bench: ProjectFixture) -> None:
    bench.add()
    edit(bench.installed_path(f"{PDF}/SKILL.md"), "one", "two")
    with pytest.raises(Edited):
        remove(bench.installer_project, ["pdf"])
    remove(bench.installer_project, ["pdf"], force=True)
    roll_back(bench.installer_project, "pdf")
    assert "two\ntwo" in text(bench, f"{PDF}/SKILL.md")


def test_removal_of_an_unlocked_skill_needs_force(bench: ProjectFixture) -> None:
    own = bench.installed_path(".agents/skills/own")
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine", encoding="utf-8")
    with pytest.raises(NotInstalledError):
        remove(bench.installer_project, ["own"])
    remove(bench.installer_project, ["own"], force=True)
    roll_back(bench.installer_project, "own")
    assert (own / "SKILL.md").read_text(encoding="utf-8") == "mine"


def test_unknown_name_has_close_matches(bench: ProjectFixture) -> None:
    bench.add()
    with pytest.raises(SkillNotFound) as caught:
        remove(bench.installer_project, ["pfd"])
    assert caught.value.close == ("pdf",)


def test_missing_skills_are_installed_from_the_lock_file(bench: ProjectFixture) -> None:
    bench.add("claude-code", "universal")
    before = read_tree(bench.project)
    for path in (".agents/skills/pdf/SKILL.md", ".agents/skills/pdf/scripts/run.sh"):
        bench.installed_path(path).unlink()
    bench.installed_path(f"{PDF}/scripts").rmdir()
    bench.installed_path(PDF).rmdir()
    bench.installed_path(".claude/skills/pdf").unlink()
    assert [result.status for result in install_locked(bench.installer_project, frozen=True)] == [
        "installed"
    ]
    assert read_tree(bench.project) == before
    assert [result.status for result in install_locked(bench.installer_project, frozen=True)] == [
        "there"
    ]


def test_frozen_install_rejects_a_changed_source(bench: ProjectFixture) -> None:
    bench.add()
    lock = text(bench, "skillhall-lock.json")
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skillhall-lock.json").write_text(lock, encoding="utf-8")
    bench.skill("pdf", "other\n")
    frozen = install_locked(bench.installer_project, frozen=True)
    assert [(result.status, result.error.code if result.error else "") for result in frozen] == [
        ("failed", "precondition_failed")
    ]
    assert not bench.installed_path(PDF).exists()
    assert [result.status for result in install_locked(bench.installer_project)] == ["installed"]
    assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")


def test_changes_are_listed(bench: ProjectFixture) -> None:
    bench.add()
    bench.skill("pdf", "new\n")
    update(bench.installer_project)
    remove(bench.installer_project, ["pdf"])
    assert [change.verb for change in list_changes(bench.installer_project)] == [
        "remove",
        "update",
        "add",
    ]


def test_concurrent_update_is_not_mistaken_for_local_edits(
    bench: ProjectFixture,
) -> None:
    old, newer, newest = (
        make_skill_md(name="pdf", body=body)
        for body in ("one\ntwo\nthree\n", "one\ntwo\nTHREE\n", "ONE\ntwo\nthree\n")
    )
    with run_http_server() as site:
        site.routes["/SKILL.md"] = respond(body=old)
        opened = open_source(site.url("/SKILL.md"), bench.settings)
        install(bench.installer_project, opened, opened.bundles, InstallTargets())

        def update_first(writer: ResponseWriter) -> None:
            site.routes["/SKILL.md"] = respond(body=newer)
            update(bench.installer_project)
            site.routes["/SKILL.md"] = respond(body=newest)
            respond(body=newest)(writer)

        site.routes["/SKILL.md"] = update_first
        assert update(bench.installer_project)[0].status is UpdateStatus.UPDATED
    assert read_tree(bench.installed_path(PDF)) == {"SKILL.md": (newest, False)}
    assert all(result.is_intact for result in verify(bench.installer_project))


def test_rollback_is_not_listed_as_a_change(bench: ProjectFixture) -> None:
    bench.add()
    remove(bench.installer_project, ["pdf"])
    roll_back(bench.installer_project, "pdf")
    assert [change.verb for change in list_changes(bench.installer_project)] == ["add"]


def test_skill_behind_a_link_out_of_the_project_is_not_read(bench: ProjectFixture) -> None:
    bench.add()
    outside = bench.folder / "outside"
    bench.installed_path(".agents").rename(outside)
    bench.installed_path(".agents").symlink_to(outside)
    with pytest.raises(UnsafePath):
        verify(bench.installer_project)
