"""The commands on installed skills: words in, rows or JSON out."""

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import click
import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from skillhall._internal.cli.checklist import ChecklistRow, select_rows
from skillhall._internal.cli.runner import run
from skillhall._internal.installer.lock import PROJECT_LOCK
from tests.support.projects import ProjectFixture, make_project

PDF = ".agents/skills/pdf"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFixture:
    bench = make_project(tmp_path)
    bench.skill("pdf", "one\ntwo\nthree\n")
    monkeypatch.chdir(bench.project)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", bench.settings.data_directory)
    return bench


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run([*words, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == words[0]
    return code, report


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_skill_is_added_updated_removed_and_rolled_back(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    code, added = answer(capsys, "add", "../source")
    assert (code, added["data"]["added"][0]["id"]) == (0, "pdf")
    assert answer(capsys, "outdated")[0] == 0
    edit(bench.source / "pdf/SKILL.md", "three", "THREE")
    code, news = answer(capsys, "outdated")
    assert (code, news["data"]["skills"][0]["status"]) == (1, "outdated")
    code, updated = answer(capsys, "update")
    assert updated["data"]["skills"][0]["files"] == [{"path": "SKILL.md", "outcome": "taken"}]
    assert answer(capsys, "verify")[0] == 0
    assert answer(capsys, "remove", "pdf", "--yes")[1]["data"] == {"removed": [PDF]}
    code, undone = answer(capsys, "rollback", "pdf")
    assert undone["data"]["changes"][0]["change"] == "remove"
    assert (bench.project / PDF / "SKILL.md").is_file()
    assert answer(capsys, "install", "--frozen")[0] == 0


def test_update_conflict_names_the_files_and_exits_with_6(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    edit(bench.project / PDF / "SKILL.md", "two", "MINE")
    edit(bench.source / "pdf/SKILL.md", "two", "THEIRS")
    capsys.readouterr()
    assert run(["update"]) == 6
    told = capsys.readouterr().err
    assert f"{PDF}/SKILL.md: conflict (both-changed)" in told
    assert "--conflicts" in told
    code, report = answer(capsys, "update")
    assert (code, report["error"]["code"]) == (6, "conflict")


def test_rejected_update_is_an_error(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    bench.write("pdf/SKILL.md", "no frontmatter")
    code, report = answer(capsys, "update")
    assert (code, report["ok"], report["error"]["code"]) == (3, False, "invalid_skill")


def test_missing_skill_has_a_hint(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    rmtree(bench.project / PDF)
    edit(bench.source / "pdf/SKILL.md", "two", "TWO")
    run(["update"])
    assert "hint: 'skillhall install' brings it back" in capsys.readouterr().err.splitlines()


def test_edited_skill_is_reported_and_not_removed(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    edit(bench.project / PDF / "SKILL.md", "two", "MINE")
    assert run(["verify"]) == 1
    assert f"{PDF}\tSKILL.md\tchanged" in capsys.readouterr().out
    assert run(["remove", "pdf", "--yes"]) == 6
    assert run(["install", "--frozen"]) == 6
    assert "--force" in capsys.readouterr().err


def test_remove_asks_for_confirmation(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["add", "../source"])
    assert run(["remove", "pdf"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert (bench.project / PDF).is_dir()


def test_add_dir_rejects_agents(bench: ProjectFixture) -> None:
    assert run(["add", "../source", "--dir", "skills", "--agent", "cursor"]) == 2
    assert run(["add", "../source", "--dir", "skills"]) == 0
    assert (bench.project / "skills/pdf/SKILL.md").is_file()
    assert run(["verify", "pdf"]) == 0


def test_unknown_agent_suggests_the_closest_name(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["add", "../source", "--agent", "claude-cod"]) == 4
    assert "claude-code" in capsys.readouterr().err


def test_add_dry_run_adds_nothing(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.skill("notes")
    assert run(["add", "../source", "--list"]) == 0
    assert "notes" in capsys.readouterr().out
    assert list(bench.project.iterdir()) == []


def test_add_list_json_includes_installed_skills(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.skill("notes")
    before = answer(capsys, "add", "../source", "--list")
    assert answer(capsys, "add", "../source", "--yes")[0] == 0
    (bench.project / PROJECT_LOCK).write_text("damaged", encoding="utf-8")
    code, report = answer(capsys, "add", "../source", "--list")
    assert (code, report) == before
    assert report["ok"]
    assert [(one["id"], one["path"]) for one in report["data"]["skills"]] == [
        ("notes", "notes"),
        ("pdf", "pdf"),
    ]


def test_existing_folder_wins_over_a_github_repository(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.source.rename(bench.project / "acme")
    (bench.project / "acme/skills").mkdir()
    (bench.project / "acme/pdf").rename(bench.project / "acme/skills/pdf")
    code, report = answer(capsys, "add", "acme/skills")
    assert (code, report["data"]["added"][0]["id"]) == (0, "pdf")
    assert "github:acme/skills" in report["data"]["notes"][0]
    assert answer(capsys, "outdated")[1]["data"]["skills"][0]["source"] == "./acme/skills"
    assert run(["add", "acme", "--list"]) == 0


def test_folder_without_skills_suggests_the_github_prefix(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.project / "acme/skills").mkdir(parents=True)
    code, report = answer(capsys, "add", "acme/skills")
    assert (code, report["error"]["code"]) == (3, "source_rejected")
    assert "github:acme/skills" in report["error"]["hint"]


@pytest.mark.parametrize("command", ["verify", "outdated", "update"])
def test_missing_lock_file_is_reported(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, report = answer(capsys, command)
    assert (code, report["ok"], report["error"]["code"]) == (4, False, "not_found")
    assert PROJECT_LOCK in report["error"]["message"]
    assert "'skillhall add'" in report["error"]["hint"]
    (bench.project / "skills-lock.json").write_text("{}", encoding="utf-8")
    assert "skills-lock.json" in answer(capsys, command)[1]["error"]["hint"]


def test_verify_with_an_empty_lock_file_succeeds(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (bench.source / "pdf").is_dir()
    assert answer(capsys, "add", "../source")[0] == 0
    assert answer(capsys, "remove", "pdf", "--yes")[0] == 0
    assert answer(capsys, "verify")[0] == 0


def test_agents_are_listed_with_their_folders(
    bench: ProjectFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.project / ".cursor").mkdir()
    agents = answer(capsys, "agents")[1]["data"]["agents"]
    assert len(agents) > 40
    assert {"id": "claude-code", "project": ".claude/skills"}.items() <= next(
        one for one in agents if one["id"] == "claude-code"
    ).items()


ROWS = [
    ChecklistRow("pdf  Reads PDF files."),
    ChecklistRow("notes  Takes notes."),
    ChecklistRow("old", "is there already"),
]


@pytest.mark.parametrize(
    ("keys", "marked"), [(" \r", [0]), ("\x1b[B \r", [1]), ("a\r", [0, 1]), ("  \x1b[B \r", [1])]
)
def test_checklist_is_controlled_by_the_keyboard(keys: str, marked: list[int]) -> None:
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        assert select_rows("Which?", ROWS, pipe, DummyOutput()) == marked


def test_checklist_without_selection_aborts() -> None:
    with create_pipe_input() as pipe:
        pipe.send_text("\r")
        with pytest.raises(click.Abort):
            select_rows("Which?", ROWS, pipe, DummyOutput())
