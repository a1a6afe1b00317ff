"""What a person owns stays, whatever a lock says, whoever wrote it and whatever goes wrong."""

import json
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from skillhall._internal.installer.install import install
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
from skillhall._internal.installer.preflight import add_to_folder
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.targets import InstallTargets
from skillhall._internal.installer.update import UpdateStatus, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.ref import GitHubRef
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


def own(bench: ProjectFixture, path: str, text: str = "mine") -> Path:
    file = bench.installed_path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def crafted(bench: ProjectFixture, key: str, *targets: LockTarget, like: str = "") -> None:
    """A lock of a stranger's: the skill at `key`, with the files of a folder of the project."""
    bench.add(overwrite=True)
    entry = read_lock(str(bench.project)).entries[PDF]
    remove(bench.installer_project, ["pdf"])
    files = entry.files if not like else tuple(locked(bench.installed_path(like)))
    changed = replace(entry, files=files, digest=compute_files_digest(files), targets=targets)
    write_lock(bench, key, changed)


def locked(folder: Path) -> Iterable[LockedFile]:
    for path, (data, _) in read_tree(folder).items():
        yield LockedFile(path, sha256(data).hexdigest(), len(data), "100644")


def write_lock(bench: ProjectFixture, key: str, entry: LockEntry) -> None:
    bench.installed_path("skillhall-lock.json").write_bytes(render_lock(Lock({key: entry})))


# A lock of a stranger's


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(("key", "copy"), [("src", ".x/pdf"), (".x/pdf", "src")])
def test_a_folder_that_is_no_skill_is_not_removed(
    bench: ProjectFixture, key: str, copy: str, force: bool
) -> None:
    own(bench, "src/main.py")
    crafted(bench, key, LockTarget(copy, "copy"), like="src")
    with pytest.raises(NotASkill):
        remove(bench.installer_project, [key], force=force)
    assert bench.installed_path("src/main.py").is_file()


@pytest.mark.parametrize("kind", ["copy", "link"])
def test_a_folder_that_is_no_skill_is_neither_updated_nor_linked(
    bench: ProjectFixture, kind: str
) -> None:
    own(bench, "src/main.py")
    own(bench, "empty/x").unlink()
    target = LockTarget("src", kind)  # type: ignore[arg-type] # parametrized
    crafted(bench, PDF, target, like="empty")
    install_locked(bench.installer_project)
    bench.installed_path(PDF).mkdir(parents=True, exist_ok=True)
    bench.skill("pdf", "new\n")
    update(bench.installer_project, conflicts="theirs")
    assert read_tree(bench.installed_path("src")) == {"main.py": (b"mine", False)}


def test_a_link_of_an_agents_folder_into_the_project_protects_no_less(
    bench: ProjectFixture,
) -> None:
    own(bench, "src/code/main.py")
    crafted(bench, PDF.replace("pdf", "code"), like="src/code")
    bench.installed_path(".agents/skills").rmdir()
    bench.installed_path(".agents/skills").symlink_to("../src")
    with pytest.raises(NotASkill):
        remove(bench.installer_project, ["code"])
    assert bench.installed_path("src/code/main.py").is_file()


def test_a_file_in_the_place_of_a_skill_is_not_replaced(bench: ProjectFixture) -> None:
    own(bench, "Makefile", "all:\n")
    own(bench, "empty/x").unlink()
    crafted(bench, PDF, LockTarget("Makefile", "copy"), like="empty")
    bench.installed_path(PDF).mkdir(parents=True)
    result = update(bench.installer_project, conflicts="theirs")[0]
    assert (result.status, type(result.error)) == (UpdateStatus.FAILED, UnsavedFilesError)
    assert bench.installed_path("Makefile").read_text(encoding="utf-8") == "all:\n"


def test_a_link_to_somewhere_else_is_not_removed(bench: ProjectFixture) -> None:
    crafted(bench, PDF, LockTarget("mine", "link"))
    bench.installed_path("mine").symlink_to("src")
    remove(bench.installer_project, ["pdf"])
    assert str(bench.installed_path("mine").readlink()) == "src"


@pytest.mark.parametrize("place", [".git/hooks", "sub/.GIT/hooks", ".git", "GIT~1/hooks"])
def test_nothing_is_written_into_version_control(bench: ProjectFixture, place: str) -> None:
    crafted(bench, place)
    with pytest.raises(LockInvalid, match="version control"):
        install_locked(bench.installer_project)
    crafted_targets = LockTarget(place, "copy")
    bench.installed_path("skillhall-lock.json").unlink()
    crafted(bench, PDF, crafted_targets)
    with pytest.raises(LockInvalid, match="version control"):
        update(bench.installer_project)


def test_nothing_is_written_into_version_control_through_a_link(bench: ProjectFixture) -> None:
    crafted(bench, ".agents/skills/hooks")
    bench.installed_path(".git").mkdir()
    bench.installed_path(".agents/skills").rmdir()
    bench.installed_path(".agents/skills").symlink_to("../.git")
    assert [type(one.error) for one in install_locked(bench.installer_project)] == [UnsafePath]
    assert list(bench.installed_path(".git").iterdir()) == []


@pytest.mark.parametrize("name", ["..", "../../outside", "./src", ".git/hooks"])
def test_force_removes_skills_only(bench: ProjectFixture, name: str) -> None:
    own(bench, "src/main.py")
    own(bench, ".agents/notes.md")
    bench.installed_path(".agents/skills").mkdir()
    own(bench, ".git/hooks/pre-commit")
    own(bench, "../outside/SKILL.md")
    before = read_tree(bench.folder)
    with pytest.raises((UnsafePath, NotASkill)):
        remove(bench.installer_project, [name], force=True)
    assert read_tree(bench.folder) == before


def test_a_place_that_no_lock_can_name_is_refused_before_anything_is_written(
    bench: ProjectFixture,
) -> None:
    opened = open_source(str(bench.source), bench.settings)
    with pytest.raises(UnsafePath):
        install(bench.installer_project, opened, opened.bundles, InstallTargets("a:b"))
    assert list(bench.project.iterdir()) == []


# What a person put there


@pytest.mark.parametrize("kind", ["link", "copy"])
def test_an_agents_own_skill_of_that_name_stays(bench: ProjectFixture, kind: str) -> None:
    own(bench, f"{CLAUDE}/SKILL.md")
    report = bench.add("windsurf", "claude-code", copy=kind == "copy")
    assert [one.reason for one in report.skipped] == ["exists"]
    assert read_tree(bench.project) == {f"{CLAUDE}/SKILL.md": (b"mine", False)}
    bench.add("windsurf", "claude-code", copy=kind == "copy", overwrite=True)
    assert bench.installed_path(CLAUDE).is_symlink() == (kind == "link")
    roll_back(bench.installer_project, "pdf")
    assert read_tree(bench.installed_path(".claude")) == {"skills/pdf/SKILL.md": (b"mine", False)}


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_link_of_ones_own_stays(bench: ProjectFixture, overwrite: bool) -> None:
    own(bench, "mine/SKILL.md")
    bench.installed_path(".claude/skills").mkdir(parents=True)
    bench.installed_path(CLAUDE).symlink_to("../../mine")
    if overwrite:
        with pytest.raises(UnsavedFilesError):
            bench.add("universal", "claude-code", overwrite=True)
    else:
        assert [one.reason for one in bench.add("universal", "claude-code").skipped] == ["exists"]
    assert str(bench.installed_path(CLAUDE).readlink()) == "../../mine"
    assert not bench.installed_path(PDF).exists()


def test_a_folder_that_took_the_place_of_a_link_stays(bench: ProjectFixture) -> None:
    bench.add("universal", "claude-code")
    bench.installed_path(CLAUDE).unlink()
    own(bench, f"{CLAUDE}/SKILL.md")
    bench.skill("pdf", "new\n")
    assert [one.is_intact for one in verify(bench.installer_project)] == [True, False]
    assert [one.status for one in install_locked(bench.installer_project)] == ["edited"]
    assert [one.status for one in update(bench.installer_project)] == [UpdateStatus.UPDATED]
    remove(bench.installer_project, ["pdf"])
    assert read_tree(bench.installed_path(CLAUDE)) == {"SKILL.md": (b"mine", False)}


def test_an_edited_copy_stays_when_one_more_agent_gets_the_skill(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    edit(bench.installed_path(f"{WINDSURF}/SKILL.md"), "one", "ONE")
    report = bench.add("claude-code", "windsurf", "roo", copy=True)
    assert [one.id for one in report.added] == ["pdf"]
    assert b"ONE" in read_tree(bench.installed_path(WINDSURF))["SKILL.md"][0]
    assert bench.installed_path(".roo/skills/pdf/SKILL.md").is_file()


def test_version_control_is_found_at_any_depth(bench: ProjectFixture) -> None:
    bench.add()
    own(bench, f"{PDF}/scripts/vendor/.git/HEAD")
    before = read_tree(bench.project)
    bench.skill("pdf", "new\n")
    assert type(update(bench.installer_project)[0].error) is UnsavedFilesError
    with pytest.raises(UnsavedFilesError):
        remove(bench.installer_project, ["pdf"], force=True)
    assert read_tree(bench.project) == before


def test_what_could_not_be_put_back_is_not_replaced_outside_of_a_project(
    bench: ProjectFixture,
) -> None:
    bundles = open_source(str(bench.source), bench.settings).bundles
    outside = bench.folder / "outside"
    add_to_folder(bundles, str(outside))
    (outside / "pdf/.git").mkdir()
    with pytest.raises(UnsavedFilesError):
        add_to_folder(bundles, str(outside), overwrite=True)
    assert (outside / "pdf/.git").is_dir()


def test_a_place_that_cannot_be_written_to_stops_it_before_anything_is_replaced(
    bench: ProjectFixture,
) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    edit(bench.installed_path(f"{WINDSURF}/SKILL.md"), "one", "ONE")
    bench.installed_path(f"{CLAUDE}/SKILL.md").unlink()
    bench.installed_path(CLAUDE).rmdir()
    bench.installed_path(".claude/skills").rmdir()
    own(bench, ".claude/skills")  # a file where the folder should be
    with pytest.raises(OSError, match="directory"):
        bench.add("claude-code", "windsurf", copy=True, overwrite=True)
    assert b"ONE" in read_tree(bench.installed_path(WINDSURF))["SKILL.md"][0]


# Updates


def test_a_copy_that_is_gone_comes_back_whole(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    bench.installed_path(f"{WINDSURF}/SKILL.md").unlink()
    bench.installed_path(WINDSURF).rmdir()
    bench.skill("pdf", "new\n")
    assert update(bench.installer_project)[0].status is UpdateStatus.UPDATED
    assert read_tree(bench.installed_path(WINDSURF)) == read_tree(bench.source / "pdf")


def test_a_skill_that_must_not_be_replaced_does_not_stop_the_others(bench: ProjectFixture) -> None:
    bench.skill("notes")
    bench.add()
    bench.installed_path(".agents/skills/notes/.git").mkdir()
    bench.skill("notes", "new\n")
    bench.skill("pdf", "new\n")
    assert [one.status for one in update(bench.installer_project)] == [
        UpdateStatus.FAILED,
        UpdateStatus.UPDATED,
    ]


def test_what_another_process_updated_meanwhile_is_the_new_base(bench: ProjectFixture) -> None:
    def archive(text: str) -> Route:
        bench.skill("pdf", text)
        data = (bench.source / "pdf/SKILL.md").read_bytes()
        return respond(body=zip_of({"pdf/SKILL.md": data}))

    with run_http_server() as site:
        site.routes["/skills.zip"] = archive("first\n")
        opened = open_source(site.url("/skills.zip"), bench.settings)
        install(bench.installer_project, opened, opened.bundles, InstallTargets())
        site.routes["/skills.zip"] = archive("second\n")
        others: list[str] = []

        def meanwhile(_what: str, _done: int, _total: int) -> None:
            if not others:
                site.routes["/skills.zip"] = archive("third\n")
                others.append(update(bench.installer_project)[0].status)

        assert update(bench.installer_project, progress=meanwhile)[0].status is UpdateStatus.CURRENT
    assert others == ["updated"]
    assert b"third" in read_tree(bench.installed_path(PDF))["SKILL.md"][0]


def test_a_new_name_upstream_is_noted_in_both_locks(bench: ProjectFixture) -> None:
    bench.add()
    edit(bench.source / "pdf/SKILL.md", "name: pdf", "name: pdf-tools")
    assert update(bench.installer_project)[0].status is UpdateStatus.UPDATED
    assert read_lock(str(bench.project)).entries[PDF].name == "pdf-tools"
    others = json.loads(bench.installed_path("skills-lock.json").read_text(encoding="utf-8"))
    assert list(others["skills"]) == ["pdf-tools"]
    assert [one.status for one in install_locked(bench.installer_project)] == ["there"]


# A history of a stranger's


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PDF, "../outside"),
        (PDF, ".git/hooks"),
        ('skills\\": {', 'skills\\": {\\ud800'),
        ('version\\": 1', 'version\\": {}'),
    ],
)
def test_a_history_that_somebody_changed_does_no_harm(
    bench: ProjectFixture, old: str, new: str
) -> None:
    own(bench, "../outside/SKILL.md")
    own(bench, ".git/hooks/pre-commit")
    bench.add()
    bench.skill("pdf", "new\n")
    update(bench.installer_project)
    file = max((bench.folder / "data/history").rglob("*.json"))
    edit(file, old, new)
    kept = {path: read_tree(bench.project / path) for path in ("../outside", ".git", PDF)}
    with pytest.raises((UnsafePath, LockInvalid)):
        roll_back(
            bench.installer_project, new.rpartition("/")[2] if "/" in new else "pdf", force=True
        )
    assert {path: read_tree(bench.project / path) for path in kept} == kept


# Small things


def test_removing_makes_no_folders(bench: ProjectFixture) -> None:
    bench.add("claude-code", "windsurf", copy=True)
    bench.installed_path(f"{WINDSURF}/SKILL.md").unlink()
    for folder in (WINDSURF, ".windsurf/skills", ".windsurf"):
        bench.installed_path(folder).rmdir()
    remove(bench.installer_project, ["pdf"])
    assert not bench.installed_path(".windsurf").exists()


def test_fields_that_are_not_known_outlive_an_overwriting(bench: ProjectFixture) -> None:
    bench.add()
    entry = read_lock(str(bench.project)).entries[PDF]
    write_lock(bench, PDF, replace(entry, unknown_fields={"team": "docs"}))
    bench.add(overwrite=True)
    assert read_lock(str(bench.project)).entries[PDF].unknown_fields == {"team": "docs"}


def test_a_preview_says_what_will_happen(bench: ProjectFixture) -> None:
    bench.add("universal")
    opened = open_source(str(bench.source), bench.settings)
    wish = InstallTargets(other_folders=(".claude/skills",))
    for dry_run in (True, False):
        report = install(bench.installer_project, opened, opened.bundles, wish, dry_run=dry_run)
        assert [one.id for one in report.added] == ["pdf"]


def test_a_noted_skill_that_agents_would_not_load_is_a_failure(bench: ProjectFixture) -> None:
    bench.add()
    noted = bench.installed_path("skills-lock.json").read_text(encoding="utf-8")
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skills-lock.json").write_text(noted, encoding="utf-8")
    bench.write("pdf/SKILL.md", "no frontmatter")
    failed = install_locked(bench.installer_project)
    assert [one.error.code if one.error else "" for one in failed] == ["invalid_skill"]


def test_a_frozen_lock_holds_the_modes_too(bench: ProjectFixture) -> None:
    bench.write("pdf/run.sh", "#!/bin/sh\n")
    bench.add()
    lock = bench.installed_path("skillhall-lock.json").read_bytes()
    remove(bench.installer_project, ["pdf"])
    bench.installed_path("skillhall-lock.json").write_bytes(lock)
    bench.write("pdf/run.sh", "#!/bin/sh\n", executable=True)
    assert [one.status for one in install_locked(bench.installer_project, frozen=True)] == [
        "failed"
    ]


def test_the_other_tools_lock_may_lie_behind_a_link_to_ours(bench: ProjectFixture) -> None:
    state = bench.folder / "state"
    state.mkdir()
    (bench.folder / "home/.agents").mkdir()
    (state / "skills").symlink_to(bench.folder / "home/.agents")
    shelf = replace(
        bench.user_project,
        settings=bench.settings._replace(variables={"XDG_STATE_HOME": str(state)}),
    )
    opened = open_source(str(bench.source), bench.settings)
    report = install(shelf, opened, opened.bundles, InstallTargets())
    assert [one.id for one in report.added] == ["pdf"]


def test_a_lock_of_the_other_tool_that_cannot_be_written_is_a_note(bench: ProjectFixture) -> None:
    state = own(bench, "../state", "a file")
    shelf = replace(
        bench.user_project,
        settings=bench.settings._replace(variables={"XDG_STATE_HOME": str(state)}),
    )
    opened = open_source(str(bench.source), bench.settings)
    opened = opened._replace(reference=GitHubRef("acme", "skills"))  # they keep no folders
    report = install(shelf, opened, opened.bundles, InstallTargets())
    assert [one.id for one in report.added] == ["pdf"]
    assert ".skill-lock.json" in report.notes[0]
    remove(shelf, ["pdf"])


def test_a_skill_that_is_removed_while_news_are_fetched_is_not_brought_back(
    bench: ProjectFixture,
) -> None:
    data = make_skill_md(name="pdf", body="one\n")
    with run_http_server() as site:
        site.routes["/SKILL.md"] = respond(body=data)
        opened = open_source(site.url("/SKILL.md"), bench.settings)
        install(bench.installer_project, opened, opened.bundles, InstallTargets())

        def removed(talk: ResponseWriter) -> None:
            remove(bench.installer_project, ["pdf"])
            respond(body=make_skill_md(name="pdf", body="two\n"))(talk)

        site.routes["/SKILL.md"] = removed
        result = update(bench.installer_project)[0]
    assert (result.status, result.error and result.error.code) == (UpdateStatus.FAILED, "not_found")
    assert not bench.installed_path(".agents/skills/pdf").exists()
