"""`skillhall doctor`: each problem of the machine or the project, with its remedy."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.commands.doctor import _HINTS
from skillhall._internal.cli.main import main
from skillhall._internal.cli.runner import run
from skillhall._internal.wiring import installation
from tests.support.skills import make_skill

_UNUSED_PORT = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("SKILLHALL_MODEL", raising=False)
    return project


def diagnose(
    capture: pytest.CaptureFixture[str], subject: str, *, exits: int = 0
) -> list[dict[str, Any]]:
    capture.readouterr()
    assert run(["doctor", "--json"]) == exits
    checks = json.loads(capture.readouterr().out)["data"]["checks"]
    return [one for one in checks if one["subject"] == subject]


def test_every_subject_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    out, err = capsys.readouterr()
    subjects = dict.fromkeys(line.split()[1] for line in out.splitlines() if line[0] != " ")
    assert [*subjects] == [
        "python",
        "git",
        "sqlite",
        "extras",
        "folders",
        "config",
        "locks",
        "server",
        "model",
    ]
    assert err == "0 problems, 0 warnings\n"


def test_missing_git_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (git,) = diagnose(capsys, "git")
    assert (git["status"], git["hint"]) == ("warning", "install git 2.39 or newer")


def test_file_in_place_of_a_folder_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache = diagnose(capsys, "folders", exits=1)[2]
    assert (cache["status"], cache["hint"]) == ("problem", "move the file away")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_data_folder_that_others_can_change_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o777)
    data = diagnose(capsys, "folders", exits=1)[1]
    assert data["status"] == "problem"
    assert data["hint"].endswith(f"chmod 700 {tmp_path / 'data'}")


def test_invalid_config_and_lock_are_problems_with_their_own_hints(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "skillhall.toml").write_text("[check]\npath = 'x'\n")
    (folder / "skillhall-lock.json").write_text("{")
    (config,) = diagnose(capsys, "config", exits=1)
    assert "unknown key 'check.path'" in config["message"]
    assert "known keys" in config["hint"]
    (lock, *_) = diagnose(capsys, "locks", exits=1)
    assert lock["status"] == "problem"


def test_missing_installed_skill_leads_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_skill(folder / "source")
    assert run(["add", "--yes", "source/pdf-tools", "-a", "claude-code"]) == 0
    assert diagnose(capsys, "locks")[0]["status"] == "ok"
    (skill,) = folder.glob(".*/skills/pdf-tools/SKILL.md")
    skill.write_text("changed")
    assert diagnose(capsys, "locks")[0]["hint"] == "'skillhall verify' shows the files"
    skill.unlink()
    skill.parent.rmdir()
    assert diagnose(capsys, "locks")[0]["hint"] == "run: skillhall install"


def test_configured_server_that_does_not_respond_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SKILLHALL_SERVER", _UNUSED_PORT)
    (server,) = diagnose(capsys, "server", exits=1)
    assert server["status"] == "problem"
    assert "SKILLHALL_SERVER" in server["hint"]


def test_model_without_its_key_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SKILLHALL_MODEL", "anthropic:claude-sonnet-4-6")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (model,) = diagnose(capsys, "model", exits=1)
    assert "ANTHROPIC_API_KEY is not set" in model["message"]
    assert model["hint"] == "set ANTHROPIC_API_KEY in the environment"


def test_missing_packages_of_an_extra_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = metadata.distribution

    def find(name: str) -> metadata.Distribution:
        if name == "pygls":
            raise metadata.PackageNotFoundError(name)
        return original(name)

    monkeypatch.setattr(metadata, "distribution", find)
    (extras,) = diagnose(capsys, "extras")
    assert (extras["status"], extras["hint"]) == ("note", "pip install 'skillhall[lsp]'")


def test_every_hint_is_used_by_the_checks() -> None:
    source = Path(installation.__file__).with_name("machine_health.py").read_text(encoding="utf-8")
    assert all(f'"{cause.removesuffix(".user")}"' in source for cause in _HINTS)


@pytest.mark.parametrize("arguments", [["--version", "--json"], ["--json", "-V"]])
def test_version_as_json_tells_what_is_installed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["skillhall", *arguments])
    assert main() == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert {"version", "python", "sqlite", "git", "extras"} <= data.keys()
    assert data["extras"]["lsp"] == {"installed": True, "missing": []}
