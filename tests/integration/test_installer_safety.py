"""The installer never loses user files, even with a hostile lock file."""

import json
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from skillhall._internal.installer.agent_folders import InstallTargets
from skillhall._internal.installer.install import add_to_folder, install
from skillhall._internal.installer.lock import (
    Lock,
    LockedFile,
    LockEntry,
    LockTarget,
    compute_files_digest,
    read_lock,
    render_lock,
)
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.update import UpdateStatus, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.opener import open_source
from skillhall.errors import LockInvalid, NotASkill, UnsafePath, UnsavedFilesError
from tests.support.archives import zip_of
from tests.support.http_server import ResponseWriter, Route, respond, run_http_server
from tests.support.projects import ProjectFixture, make_project, read_tree
from tests.support.skills import make_skill_md

PDF, CLAUDE, WINDSURF = ".agents/skills/pdf", ".claude/skills/pdf", ".windsurf/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path) -> ProjectFixture:
    bench = make_project(tmp_path)
    bench.skill("pdf", "one\n")
    return bench


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def write(bench: ProjectFixture, path: str, text: str = "mine") -> Path:
    file = bench.installed_path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def forge_lock(bench: ProjectFixture, key: str, *targets: LockTarget, like: str = "") -> None:
    """Write a lock file with a skill at `key` that has the files of the folder `like`."""
    bench.add(overwrite=True)
    entry = read_lock(str(bench.project)).entries[PDF]
    remove(bench.installer_project, ["pdf"])
    files = entry.files if not like else tuple(lock_files(bench.installed_path(like)))
    forged = replace(entry, files=files, digest=compute_files_digest(files), targets=targets)
    write_lock(bench, key, forged)


def lock_files(folder: Path) -> Iterable[LockedFile]:
    for path, (data, _) in read_tree(folder).items():
        yield LockedFile(path, sha256(data).hexdigest(), len(data), "100644")


def write_lock(bench: ProjectFixture, key: str, entry: LockEntry) -> None:
    bench.installed_path("skillhall-lock.json").write_bytes(render_lock(Lock({key: entry})))


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(("key", "copy"), [("src", ".x/pdf"), (".x/pdf", "src")])
def test_folder_without_skill_md_is_not_removed(
    bench: ProjectFixture, key: str, copy: str, force: bool
) -> None:
    write(bench, "src/main.py")
    forge_lock(bench, key, LockTarget(copy, "copy"), like="src")
    with pytest.raises(NotASkill):
        remove(bench.installer_project, [key], force=force)
    assert bench.installed_path("src/main.py").is_file()


@pytest.mark.parametrize("kind", ["copy", "link"])
def test_folder_without_skill_md_is_neither_updated_nor_linked(
    bench: ProjectFixture, kind: str
) -> None:
    write(bench, "src/main.py")
    write(bench, "empty/x").unlink()
    target = LockTarget("src", kind)  # type: ignore[arg-type] # parametrized
    forge_lock(bench, PDF, target, like="empty")
    install_locked(bench.installer_project)
    bench.installed_path(PDF).mkdir(parents=True, exist_ok=True)
    bench.skill("pdf", "new\n")
    update(bench.installer_project, conflicts="theirs")
    assert read_tree(bench.installed_path("src")) == {"main.py": (b"mine", False)}


def test_linked_agent_folder_does_not_allow_removing_other_folders(
    bench: ProjectFixture,
) -> None:
    write(bench, "src/code/main.py")
    forge_lock(bench, PDF.replace("pdf", "code"), like="src/code")
    bench.installed_path(".agents/skills").rmdir()
    bench.installed_path(".agents/skills").symlink_to("../src")
    with pytest.raises(NotASkill):
        remove(bench.installer_project, ["code"])
    assert bench.installed_path("src/code/main.py").is_file()


def test_file_at_a_target_path_is_not_replaced(bench: ProjectFixture) -> None:
    write(bench, "Makefile", "all:\n")
    write(bench, "empty/x").unlink()
    forge_lock(bench, PDF, LockTarget("Makefile", "copy"), like="empty")
    bench.installed_path(PDF).mkdir(parents=True)
    result = update(bench.installer_project, conflicts="theirs")[0]
    assert (result.status, type(result.error)) == (UpdateStatus.FAILED, UnsavedFilesError)
    assert bench.installed_path("Makefile").read_text(encoding="utf-8") == "all:\n"


def test_foreign_link_is_not_removed(bench: ProjectFixture) -> None:
    forge_lock(bench, PDF, LockTarget("mine", "link"))
    bench.installed_path("mine").symlink_to("src")
    remove(bench.installer_project, ["pdf"])
    assert str(bench.installed_path("mine").readlink()) == "src"


@pytest.mark.parametrize("path", [".git/hooks", "sub/.GIT/hooks", ".git", "GIT~1/hooks"])
def test_lock_file_cannot_target_version_control(bench: ProjectFixture, path: str) -> None:
    forge_lock(bench, path)
    with pytest.raises(LockInvalid, match="version control"):
        install_locked(bench.installer_project)
    bench.installed_path("skillhall-lock.json").unlink()
    forge_lock(bench, PDF, LockTarget(path, "copy"))
    with pytest.raises(LockInvalid, match="version control"):
        update(bench.installer_project)


def test_link_into_version_control_is_not_followed(bench: ProjectFixture) -> None:
    forge_lock(bench, ".agents/skills/hooks")
    bench.installed_path(".git").mkdir()
    bench.installed_path(".agents/skills").rmdir()
    bench.installed_path(".agents/skills").symlink_to("../.git")
    assert [type(result.error) for result in install_locked(bench.installer_project)] == [
        UnsafePath
    ]
    assert list(bench.installed_path(".git").iterdir()) == []


@pytest.mark.parametrize("name", ["..", "../../outside", "./src", ".git/hooks"])
def test_force_removes_only_skills(bench: ProjectFixture, name: str) -> None:
    write(bench, "src/main.py")
    write(bench, ".agents/notes.md")
    bench.installed_path(".agents/skills").mkdir()
    write(bench, ".git/hooks/pre-commit")
    write(bench, "../outside/SKILL.md")
    before = read_tree(bench.folder)
    with pytest.raises((UnsafePath, NotASkill)):
        remove(bench.installer_project, [name], force=True)
    assert read_tree(bench.folder) == before


def test_invalid_target_folder_is_rejected_before_writing(
    bench: ProjectFixture,
) -> None:
    opened = open_source(str(bench.source), bench.settings)
    with pytest.raises(UnsafePath):
        install(bench.installer_project, opened, opened.bundles, InstallTargets("a:b"))
    assert list(bench.project.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "copy"])
def test_existing_skill_of_an_agent_is_not_replaced(bench: ProjectFixture, kind: str) -> None:
    write(bench, f"{CLAUDE}/SKILL.md")
    report = bench.add("windsurf", "claude-code", copy=kind == "copy")
    assert [skill.reason for skill in report.skipped] == ["exists"]
    assert read_tree(bench.project) == {f"{CLAUDE}/SKILL.md": (b"mine", False)}
    bench.add("windsurf", "claude-code", copy=kind == "copy", overwrite=True)
    assert bench.installed_path(CLAUDE).is_symlink() == (kind == "link")
    roll_back(bench.installer_project, "pdf")
    assert read_tree(bench.installed_path(".claude")) == {"skills/pdf/SKILL.md": (b"mine", False)}


@pytest.mark.parametrize("overwrite", [True, False])
def test_link_of_the_user_is_not_replaced(bench: ProjectFixture, overwrite: bool) -> None:
    write(bench, "mine/SKILL.md")
    bench.installed_path(".claude/skills").mkdir(parents=True)
    bench.installed_path(CLAUDE).symlink_to("../../mine")
    if overwrite:
        with pytest.raises(UnsavedFilesError):
            bench.add("universal", "claude-code", overwrite=True)
    else:
        assert [skill.reason for skill in bench.add("universal", "claude-code").skipped] == [
            "exists"
        ]
    assert str(bench.installed_path(CLAUDE).readlink()) == "../../mine"
    assert not bench.installed_path(PDF).exists()


def test_folder_that_replaced_a_link_is_not_changed(bench: ProjectFixture) -> None:
    bench.add("universal", "claude-code")
    bench.installed_path(CLAUDE).unlink()
    write(bench, f"{CLAUDE}/SKILL.md")
    bench.skill("pdf", "new\n")
    assert [result.is_intact for result in verify(bench.installer_project)] == [True, False]
    assert [result.status for result in install_locked(bench.installer_project)] == ["edited"]
    assert [result.status for result in update(bench.installer_project)] == [UpdateStatus.UPDATED]
    remove(bench.installer_project, ["pdf"])
    assert read_tree(bench.installed_path(CLAUDE)) == {"SKILL.md": (b"mine", False)}


def test_edited_copy_is_unchanged_when_another_agent_is_added(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    edit(bench.installed_path(f"{WINDSURF}/SKILL.md"), "one", "ONE")
    report = bench.add("claude-code", "windsurf", "roo", copy=True)
    assert [skill.id for skill in report.added] == ["pdf"]
    assert b"ONE" in read_tree(bench.installed_path(WINDSURF))["SKILL.md"][0]
    assert bench.installed_path(".roo/skills/pdf/SKILL.md").is_file()


def test_nested_version_control_prevents_changes(bench: ProjectFixture) -> None:
    bench.add()
    write(bench, f"{PDF}/scripts/vendor/.git/HEAD")
    before = read_tree(bench.project)
    bench.skill("pdf", "new\n")
    assert type(update(bench.installer_project)[0].error) is UnsavedFilesError
    with pytest.raises(UnsavedFilesError):
        remove(bench.installer_project, ["pdf"], force=True)
    assert read_tree(bench.project) == before


def test_unrestorable_content_in_a_plain_folder_is_not_replaced(
    bench: ProjectFixture,
) -> None:
    bundles = open_source(str(bench.source), bench.settings).bundles
    outside = bench.folder / "outside"
    add_to_folder(bundles, str(outside))
    (outside / "pdf/.git").mkdir()
    with pytest.raises(UnsavedFilesError):
        add_to_folder(bundles, str(outside), overwrite=True)
    assert (outside / "pdf/.git").is_dir()


def test_unwritable_target_is_detected_before_writing(
    bench: ProjectFixture,
) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    edit(bench.installed_path(f"{WINDSURF}/SKILL.md"), "one", "ONE")
    bench.installed_path(f"{CLAUDE}/SKILL.md").unlink()
    bench.installed_path(CLAUDE).rmdir()
    bench.installed_path(".claude/skills").rmdir()
    write(bench, ".claude/skills")  # a file where the folder should be
    with pytest.raises(OSError, match="directory"):
        bench.add("claude-code", "windsurf", copy=True, overwrite=True)
    assert b"ONE" in read_tree(bench.installed_path(WINDSURF))["SKILL.md"][0]


def test_update_restores_a_deleted_copy(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    bench.installed_path(f"{WINDSURF}/SKILL.md").unlink()
    bench.installed_path(WINDSURF).rmdir()
    bench.skill("pdf", "new\n")
    assert update(bench.installer_project)[0].status is UpdateStatus.UPDATED
    assert read_tree(bench.installed_path(WINDSURF)) == read_tree(bench.source / "pdf")


def test_update_failure_does_not_affect_other_skills(bench: ProjectFixture) -> None:
    bench.skill("notes")
    bench.add()
    bench.installed_path(".agents/skills/notes/.git").mkdir()
    bench.skill("notes", "new\n")
    bench.skill("pdf", "new\n")
    assert [result.status for result in update(bench.installer_project)] == [
        UpdateStatus.FAILED,
        UpdateStatus.UPDATED,
    ]


def test_update_restarts_after_a_concurrent_update(bench: ProjectFixture) -> None:
    def archive(text: str) -> Route:
        bench.skill("pdf", text)
        data = (bench.source / "pdf/SKILL.md").read_bytes()
        return respond(body=zip_of({"pdf/SKILL.md": data}))

    with run_http_server() as site:
        site.routes["/skills.zip"] = archive("first\n")
        opened = open_source(site.url("/skills.zip"), bench.settings)
        install(bench.installer_project, opened, opened.bundles, InstallTargets())
        site.routes["/skills.zip"] = archive("second\n")
        statuses: list[str] = []

        def update_once(_what: str, _done: int, _total: int) -> None:
            if not statuses:
                site.routes["/skills.zip"] = archive("third\n")
                statuses.append(update(bench.installer_project)[0].status)

        result = update(bench.installer_project, progress=update_once)[0]
        assert result.status is UpdateStatus.CURRENT
    assert statuses == ["updated"]
    assert b"third" in read_tree(bench.installed_path(PDF))["SKILL.md"][0]


def test_renamed_skill_is_updated_in_both_lock_files(bench: ProjectFixture) -> None:
    bench.add()
    edit(bench.source / "pdf/SKILL.md", "name: pdf", "name: pdf-tools")
    assert update(bench.installer_project)[0].status is UpdateStatus.UPDATED
    assert read_lock(str(bench.project)).entries[PDF].name == "pdf-tools"
    npx_lock = json.loads(bench.installed_path("skills-lock.json").read_text(encoding="utf-8"))
    assert list(npx_lock["skills"]) == ["pdf-tools"]
    assert [result.status for result in install_locked(bench.installer_project)] == ["there"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PDF, "../outside"),
        (PDF, ".git/hooks"),
        ('skills\\": {', 'skills\\": {\\ud800'),
        ('version\\": 1', 'version\\": {}'),
    ],
)
def test_manipulated_history_does_no_harm(bench: ProjectFixture, old: str, new: str) -> None:
    write(bench, "../outside/SKILL.md")
    write(bench, ".git/hooks/pre-commit")
    bench.add()
    bench.skill("pdf", "new\n")
    update(bench.installer_project)
    file = max((bench.folder / "data/history").rglob("*.json"))
    edit(file, old, new)
    before = {path: read_tree(bench.project / path) for path in ("../outside", ".git", PDF)}
    name = new.rpartition("/")[2] if "/" in new else "pdf"
    with pytest.raises((UnsafePath, LockInvalid)):
        roll_back(bench.installer_project, name, force=True)
    assert {path: read_tree(bench.project / path) for path in before} == before


def test_removal_creates_no_folders(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    bench.installed_path(f"{WINDSURF}/SKILL.md").unlink()
    for folder in (WINDSURF, ".windsurf/skills", ".windsurf"):
        bench.installed_path(folder).rmdir()
    remove(bench.installer_project, ["pdf"])
    assert not bench.installed_path(".windsurf").exists()


def test_overwriting_preserves_unknown_fields(bench: ProjectFixture) -> None:
    bench.add()
    entry = read_lock(str(bench.project)).entries[PDF]
    write_lock(bench, PDF, replace(entry, unknown_fields={"team": "docs"}))
    bench.add(overwrite=True)
    assert read_lock(str(bench.project)).entries[PDF].unknown_fields == {"team": "docs"}


def test_dry_run_report_equals_the_real_one(bench: ProjectFixture) -> None:
    bench.add("universal")
    opened = open_source(str(bench.source), bench.settings)
    targets = InstallTargets(other_folders=(".claude/skills",))
    for dry_run in (True, False):
        report = install(bench.installer_project, opened, opened.bundles, targets, dry_run=dry_run)
        assert [skill.id for skill in report.added] == ["pdf"]


def test_rejected_skill_of_an_npx_lock_is_a_failure(bench: ProjectFixture) -> None:
    bench.add()
    npx_lock = bench.installed_path("skills-lock.json").read_text(encoding="utf-8")
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skills-lock.json").write_text(npx_lock, encoding="utf-8")
    bench.write("pdf/SKILL.md", "no frontmatter")
    results = install_locked(bench.installer_project)
    assert [result.error.code if result.error else "" for result in results] == ["invalid_skill"]


def test_frozen_install_compares_file_modes(bench: ProjectFixture) -> None:
    bench.write("pdf/run.sh", "#!/bin/sh\n")
    bench.add()
    lock = bench.installed_path("skillhall-lock.json").read_bytes()
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skillhall-lock.json").write_bytes(lock)
    bench.write("pdf/run.sh", "#!/bin/sh\n", executable=True)
    assert [result.status for result in install_locked(bench.installer_project, frozen=True)] == [
        "failed"
    ]


def test_npx_lock_may_be_in_a_linked_folder(bench: ProjectFixture) -> None:
    state = bench.folder / "state"
    state.mkdir()
    (bench.folder / "home/.agents").mkdir()
    (state / "skills").symlink_to(bench.folder / "home/.agents")
    project = replace(
        bench.user_project,
        settings=bench.settings._replace(variables={"XDG_STATE_HOME": str(state)}),
    )
    opened = open_source(str(bench.source), bench.settings)
    report = install(project, opened, opened.bundles, InstallTargets())
    assert [skill.id for skill in report.added] == ["pdf"]


def test_unwritable_npx_lock_is_only_a_note(bench: ProjectFixture) -> None:
    state = write(bench, "../state", "a file")
    project = replace(
        bench.user_project,
        settings=bench.settings._replace(variables={"XDG_STATE_HOME": str(state)}),
    )
    opened = open_source(str(bench.source), bench.settings)
    # `npx skills` does not record local folders of users.
    opened = opened._replace(reference=GitHubRef("acme", "skills"))
    report = install(project, opened, opened.bundles, InstallTargets())
    assert [skill.id for skill in report.added] == ["pdf"]
    assert ".skill-lock.json" in report.notes[0]
    remove(project, ["pdf"])


def test_skill_removed_during_an_update_is_not_restored(
    bench: ProjectFixture,
) -> None:
    data = make_skill_md(name="pdf", body="one\n")
    with run_http_server() as site:
        site.routes["/SKILL.md"] = respond(body=data)
        opened = open_source(site.url("/SKILL.md"), bench.settings)
        install(bench.installer_project, opened, opened.bundles, InstallTargets())

        def remove_first(writer: ResponseWriter) -> None:
            remove(bench.installer_project, ["pdf"])
            respond(body=make_skill_md(name="pdf", body="two\n"))(writer)

        site.routes["/SKILL.md"] = remove_first
        result = update(bench.installer_project)[0]
    assert (result.status, result.error and result.error.code) == (UpdateStatus.FAILED, "not_found")
    assert not bench.installed_path(".agents/skills/pdf").exists()
