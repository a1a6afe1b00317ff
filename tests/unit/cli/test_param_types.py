"""Shell completion of agents and installed skills."""

from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill

CONFIG = '[[agents]]\nid = "writer"\n[[agents]]\nid = "reviewer"\n'


@pytest.fixture(autouse=True)
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A project with two installed skills, and two agents in its config."""
    monkeypatch.chdir(tmp_path)
    for name in ("pdf-tools", "csv-report"):
        make_skill(tmp_path / "source", name)
    assert run(["add", "./source", "--yes"]) == 0
    (tmp_path / "skillhall.toml").write_text(CONFIG, encoding="utf-8")
    capsys.readouterr()
    return tmp_path


def complete(
    shell: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return the values that click's protocol passes to the shell script."""
    *before, incomplete = line.split(" ")
    monkeypatch.setenv("_SKILLHALL_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", line if shell == "bash" else " ".join([*before, incomplete]))
    monkeypatch.setenv("COMP_CWORD", incomplete if shell == "fish" else str(len(before)))
    run([])
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.strip().splitlines()
    if shell == "zsh":  # three lines each: type, value, help
        return lines[1::3]
    return [line.partition(",")[2].partition("\t")[0] for line in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("skillhall add ./source --agent claude", ["claude-code"]),
        ("skillhall generate -a curs", ["cursor"]),
        ("skillhall remove p", ["pdf-tools"]),
        ("skillhall remove pdf-tools c", ["csv-report"]),
        ("skillhall show p", ["pdf-tools"]),
        ("skillhall prompt --agent w", ["writer"]),
    ],
)
def test_completion_offers_agents_and_installed_skills(
    shell: str,
    line: str,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert complete(shell, line, monkeypatch, capsys) == expected


@pytest.mark.parametrize("command", ["remove", "update", "outdated", "verify", "rollback"])
def test_installed_skill_commands_complete_skill_names(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = complete("bash", f"skillhall {command} ", monkeypatch, capsys)
    assert found == ["csv-report", "pdf-tools"]


def test_rollback_completes_removed_skills(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["remove", "pdf-tools", "--yes"]) == 0
    capsys.readouterr()
    assert complete("bash", "skillhall remove p", monkeypatch, capsys) == []
    assert complete("bash", "skillhall rollback p", monkeypatch, capsys) == ["pdf-tools"]


@pytest.mark.parametrize("command", ["prompt", "chat", "stats", "tool list"])
def test_completion_offers_configured_agents(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = complete("bash", f"skillhall {command} --agent ", monkeypatch, capsys)
    assert found == ["reviewer", "writer"]


@pytest.mark.parametrize("line", ["skillhall remove p", "skillhall prompt --agent w"])
def test_completion_with_broken_files_is_silently_empty(
    line: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("skillhall-lock.json", "skillhall.toml"):
        (project / name).write_text("{", encoding="utf-8")
    assert complete("bash", line, monkeypatch, capsys) == []
