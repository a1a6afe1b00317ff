"""`Installer` does what the command line does."""

import json
from pathlib import Path

import pytest

from skillhall import Installer
from skillhall._internal.cli.runner import run
from skillhall.errors import NothingToUndo, SkillNotFound, UnknownAgent
from skillhall.types import Progress
from tests.support.github_api_server import Repository
from tests.support.skills import make_skill_md


def test_library_and_command_line_write_the_same_lock(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("by-library", "by-command"):
        (project / name).mkdir()
    Installer.project("by-library").add(project / "skills", agents=["claude-code"])
    monkeypatch.chdir(project / "by-command")
    assert run(["add", str(project / "skills"), "-a", "claude-code", "--yes"]) == 0
    locks = [
        json.loads((project / name / "skillhall-lock.json").read_bytes())
        for name in ("by-library", "by-command")
    ]
    assert locks[0] == locks[1]


def test_path_object_is_a_local_folder_and_a_string_prefers_an_existing_one(project: Path) -> None:
    (project / "target").mkdir()
    installer = Installer.project("target")
    assert len(installer.add(Path("skills"), dry_run=True).added) == 3
    assert not installer.installed
    assert len(installer.add(str(project / "skills"), skills=["pdf-tools"]).added) == 1
    assert installer.installed == ("pdf-tools",)


def test_update_merges_and_remove_can_be_rolled_back(project: Path) -> None:
    installer = Installer.project()
    installer.add("skills", skills=["csv-report"])
    source = project / "skills" / "csv-report" / "SKILL.md"
    source.write_bytes(make_skill_md("csv-report", "Sums up CSV files."))
    assert [result.status for result in installer.outdated("csv-report")] == ["outdated"]
    assert [result.status for result in installer.update()] == ["updated"]
    assert installer.remove("csv-report") == [".agents/skills/csv-report"]
    assert installer.rollback("csv-report").verb == "remove"
    assert b"Sums up" in (project / ".agents/skills/csv-report/SKILL.md").read_bytes()


def test_install_restores_missing_skills_from_the_lock(project: Path) -> None:
    installer = Installer.project()
    installer.add("skills", skills=["csv-report"])
    (project / ".agents/skills/csv-report/SKILL.md").unlink()
    (project / ".agents/skills/csv-report").rmdir()
    assert [result.status for result in installer.install(frozen=True)] == ["installed"]


def test_nothing_is_written_if_add_raises(project: Path) -> None:
    installer = Installer.project()
    with pytest.raises(SkillNotFound):
        installer.add("skills", skills=["missing"])
    with pytest.raises(UnknownAgent):
        installer.add("skills", agents=["no-such-agent"])
    with pytest.raises(NothingToUndo):
        installer.rollback("pdf-tools")
    assert not (project / ".agents").exists()


def test_user_scope_installs_into_the_home_folder(project: Path) -> None:
    installer = Installer.user()
    installer.add("skills", skills=["csv-report"])
    assert (Path.home() / ".agents/skills/csv-report/SKILL.md").exists()
    assert installer.installed == ("csv-report",)


def test_progress_of_a_download_is_reported(github: Repository) -> None:
    names = [f"skill-{number}" for number in range(12)]  # so many that an archive is downloaded
    github.commit({f"skills/{name}/SKILL.md": make_skill_md(name) for name in names}, "main")
    steps: list[Progress] = []
    Installer.project(progress=steps.append).add("acme/skills")
    assert steps[-1].step == "Downloading"
    assert steps[-1].completed > 0
