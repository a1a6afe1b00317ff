"""`skillhall` alone: what is in the folder, and the next steps."""

import json
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return project


def overview(capture: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - JSON
    capture.readouterr()
    assert run(["--json"]) == 0
    report = json.loads(capture.readouterr().out)
    assert report["command"] == "overview"
    return report["data"]


def next_steps(capture: pytest.CaptureFixture[str]) -> list[str]:
    steps = [one["command"] for one in overview(capture)["next"]]
    assert len(steps) == 3
    return steps


def test_empty_folder_suggests_to_add_or_write_skills(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("There are no skills in this folder.\n")
    assert next_steps(capsys) == [
        "skillhall add owner/repository",
        "skillhall init my-skill",
        "skillhall doctor",
    ]


def test_skills_in_direct_subfolders_are_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        make_skill(folder, name)
    assert overview(capsys)["skills"] == {".": 2}
    assert next_steps(capsys)[0] == "skillhall check ."
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("2 skills in this folder\n")


def test_repository_of_skills_is_checked_and_served(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_skill(folder / "skills")
    assert overview(capsys)["skills"] == {"skills": 1}
    assert next_steps(capsys) == [
        "skillhall check skills",
        "skillhall list",
        "skillhall serve skills",
    ]


def test_folder_of_a_skill_is_checked_and_gets_evals(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make_skill(folder))
    assert overview(capsys)["is_skill"] is True
    assert next_steps(capsys)[:2] == ["skillhall check .", "skillhall eval init ."]


def test_problems_come_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_skill(folder / ".agents/skills", "broken one", data=b"# Nothing\n")
    make_skill(folder / "source")
    assert run(["add", "--yes", "source/pdf-tools", "-a", "claude-code"]) == 0
    assert next_steps(capsys)[0].startswith("skillhall validate '.agents/skills/broken one")
    for path in folder.glob(".*/skills/pdf-tools/SKILL.md"):
        path.unlink()
        path.parent.rmdir()
    report = overview(capsys)
    assert (report["installed"], report["missing"]) == (1, 1)
    assert report["next"][0]["command"] == "skillhall install"


def test_unreadable_lock_leads_to_the_doctor(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "skillhall-lock.json").write_text("{")
    assert run([]) == 0
    assert "The lock file cannot be used" in capsys.readouterr().out
    assert next_steps(capsys)[0] == "skillhall doctor"


def test_json_before_a_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json", "list"]) == 2
    assert "write --json after the command: list" in capsys.readouterr().out


def test_install_with_a_source_adds_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_skill(folder / "source")
    assert run(["install", "source/pdf-tools", "--yes", "-a", "claude-code", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "add"


@pytest.mark.parametrize(
    ("alias", "command"), [("info", "show"), ("lint", "validate"), ("ls", "list")]
)
def test_aliases_run_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], alias: str, command: str
) -> None:
    make_skill(folder / ".agents/skills")
    name = ["pdf-tools"] if command == "show" else []
    assert run([alias, *name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == command
