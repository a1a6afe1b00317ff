"""The commands on installed skills: arguments in, rows or JSON out."""

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import click
import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from skillhall._internal.cli.commands.install.add import select_rows
from skillhall._internal.cli.runner import run
from skillhall._internal.installer.lock import PROJECT_LOCK
from tests.support.projects import ProjectFixture, make_project

PDF = ".agents/skills/pdf"


@pytest.fixture
def project_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFixture:
    project_fixture = make_project(tmp_path)
    project_fixture.skill("pdf", "one\ntwo\nthree\n")
    monkeypatch.chdir(project_fixture.project)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", project_fixture.settings.data_directory)
    return project_fixture


def run_json(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run([*argv, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == argv[0]
    return code, report


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_skill_is_added_updated_removed_and_rolled_back(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    code, added = run_json(capsys, "add", "../source")
    assert (code, added["data"]["added"][0]["id"]) == (0, "pdf")
    assert run_json(capsys, "outdated")[0] == 0
    edit(project_fixture.source / "pdf/SKILL.md", "three", "THREE")
    code, outdated = run_json(capsys, "outdated")
    assert (code, outdated["data"]["skills"][0]["status"]) == (1, "outdated")
    code, updated = run_json(capsys, "update")
    assert updated["data"]["skills"][0]["files"] == [{"path": "SKILL.md", "outcome": "taken"}]
    assert run_json(capsys, "verify")[0] == 0
    assert run_json(capsys, "remove", "pdf", "--yes")[1]["data"] == {"removed": [PDF]}
    code, undone = run_json(capsys, "rollback", "pdf")
    assert undone["data"]["changes"][0]["change"] == "remove"
    assert (project_fixture.project / PDF / "SKILL.md").is_file()
    assert run_json(capsys, "install", "--frozen")[0] == 0


def test_update_conflict_names_the_files_and_exits_with_6(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    edit(project_fixture.project / PDF / "SKILL.md", "two", "MINE")
    edit(project_fixture.source / "pdf/SKILL.md", "two", "THEIRS")
    capsys.readouterr()
    assert run(["update"]) == 6
    errors = capsys.readouterr().err
    assert f"{PDF}/SKILL.md: conflict (both-changed)" in errors
    assert "--conflicts" in errors
    code, report = run_json(capsys, "update")
    assert (code, report["error"]["code"]) == (6, "conflict")


def test_rejected_update_is_an_error(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    project_fixture.write("pdf/SKILL.md", "no frontmatter")
    code, report = run_json(capsys, "update")
    assert (code, report["ok"], report["error"]["code"]) == (3, False, "invalid_skill")


def test_missing_skill_has_a_hint(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    rmtree(project_fixture.project / PDF)
    edit(project_fixture.source / "pdf/SKILL.md", "two", "TWO")
    run(["update"])
    assert "hint: 'skillhall install' installs it again" in capsys.readouterr().err.splitlines()


def test_edited_skill_is_reported_and_not_removed(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    edit(project_fixture.project / PDF / "SKILL.md", "two", "MINE")
    assert run(["verify"]) == 1
    assert f"{PDF}\tSKILL.md\tchanged" in capsys.readouterr().out
    assert run(["remove", "pdf", "--yes"]) == 6
    assert run(["install", "--frozen"]) == 6
    assert "--force" in capsys.readouterr().err


def test_remove_asks_for_confirmation(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    assert run(["remove", "pdf"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert (project_fixture.project / PDF).is_dir()


def test_add_dir_rejects_agents(project_fixture: ProjectFixture) -> None:
    assert run(["add", "../source", "--dir", "skills", "--agent", "cursor"]) == 2
    assert run(["add", "../source", "--dir", "skills"]) == 0
    assert (project_fixture.project / "skills/pdf/SKILL.md").is_file()
    assert run(["verify", "pdf"]) == 0


def test_unknown_agent_suggests_the_closest_name(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["add", "../source", "--agent", "claude-cod"]) == 4
    assert "claude-code" in capsys.readouterr().err


def test_add_list_adds_nothing(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    project_fixture.skill("notes")
    assert run(["add", "../source", "--list"]) == 0
    assert "notes" in capsys.readouterr().out
    assert list(project_fixture.project.iterdir()) == []


def test_add_list_json_includes_installed_skills(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    project_fixture.skill("notes")
    before = run_json(capsys, "add", "../source", "--list")
    assert run_json(capsys, "add", "../source", "--yes")[0] == 0
    (project_fixture.project / PROJECT_LOCK).write_text("damaged", encoding="utf-8")
    code, report = run_json(capsys, "add", "../source", "--list")
    assert (code, report) == before
    assert report["ok"]
    assert [(entry["id"], entry["path"]) for entry in report["data"]["skills"]] == [
        ("notes", "notes"),
        ("pdf", "pdf"),
    ]


def test_existing_folder_wins_over_a_github_repository(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    project_fixture.source.rename(project_fixture.project / "acme")
    (project_fixture.project / "acme/skills").mkdir()
    (project_fixture.project / "acme/pdf").rename(project_fixture.project / "acme/skills/pdf")
    code, report = run_json(capsys, "add", "acme/skills")
    assert (code, report["data"]["added"][0]["id"]) == (0, "pdf")
    assert "github:acme/skills" in report["data"]["notes"][0]
    assert run_json(capsys, "outdated")[1]["data"]["skills"][0]["source"] == "./acme/skills"
    assert run(["add", "acme", "--list"]) == 0


def test_folder_without_skills_suggests_the_github_prefix(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (project_fixture.project / "acme/skills").mkdir(parents=True)
    code, report = run_json(capsys, "add", "acme/skills")
    assert (code, report["error"]["code"]) == (3, "source_rejected")
    assert "github:acme/skills" in report["error"]["hint"]


@pytest.mark.parametrize("command", ["verify", "outdated", "update"])
def test_missing_lock_file_is_reported(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, report = run_json(capsys, command)
    assert (code, report["ok"], report["error"]["code"]) == (4, False, "not_found")
    assert PROJECT_LOCK in report["error"]["message"]
    assert "'skillhall add'" in report["error"]["hint"]
    (project_fixture.project / "skills-lock.json").write_text("{}", encoding="utf-8")
    assert "skills-lock.json" in run_json(capsys, command)[1]["error"]["hint"]


def test_verify_with_an_empty_lock_file_succeeds(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (project_fixture.source / "pdf").is_dir()
    assert run_json(capsys, "add", "../source")[0] == 0
    assert run_json(capsys, "remove", "pdf", "--yes")[0] == 0
    assert run_json(capsys, "verify")[0] == 0


def test_agents_are_listed_with_their_folders(
    project_fixture: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (project_fixture.project / ".cursor").mkdir()
    agents = run_json(capsys, "agents")[1]["data"]["agents"]
    assert len(agents) > 40
    assert {"id": "claude-code", "project": ".claude/skills"}.items() <= next(
        entry for entry in agents if entry["id"] == "claude-code"
    ).items()


ROWS = ["pdf  Reads PDF files.", "notes  Takes notes."]


@pytest.mark.parametrize(
    ("keys", "selected"), [(" \r", [0]), ("\x1b[B \r", [1]), ("a\r", [0, 1]), ("  \x1b[B \r", [1])]
)
def test_checklist_is_controlled_by_the_keyboard(keys: str, selected: list[int]) -> None:
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        assert select_rows("Which?", ROWS, pipe, DummyOutput()) == selected


def test_checklist_without_selection_aborts() -> None:
    with create_pipe_input() as pipe:
        pipe.send_text("\r")
        with pytest.raises(click.Abort):
            select_rows("Which?", ROWS, pipe, DummyOutput())
