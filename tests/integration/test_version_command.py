"""`skillhall version` on the run directory and the database of a server."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.store import bind_actor
from skillhall._internal.wiring.database import open_database_services
from tests.support.actors import ACTOR
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with an approved skill, whose changes are reviewed."""
    folder = tmp_path / "run/.agents/skills"
    make_skill(folder, "pdf", data=make_skill_md("pdf", "Reads.", "One."))
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SKILLHALL_REVIEW", "one")
    assert run(["version", "list", "pdf"]) == 0
    return folder


def edit(skills: Path, body: str) -> None:
    (skills / "pdf/SKILL.md").write_bytes(make_skill_md("pdf", "Reads.", body))


def test_review_by_commands(skills: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(skills, "Two.")
    assert run(["version", "diff", "pdf"]) == 0
    assert "+ Two." in capsys.readouterr().out
    assert run(["version", "submit", "pdf@2"]) == 0
    assert run(["version", "return", "pdf", "--comment", "Why?"]) == 0
    assert run(["version", "submit", "pdf"]) == 0
    capsys.readouterr()
    assert run(["version", "show", "pdf@2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert [row["comment"] for row in data["reviews"]] == ["", "Why?", ""]
    assert run(["version", "approve", "pdf", "--digest", f"sha256:{'0' * 64}"]) == 6
    assert run(["version", "approve", "pdf", "--digest", data["digest"]]) == 0
    assert run(["version", "use", "pdf@1"]) == 0
    assert b"One." in (skills / "pdf/SKILL.md").read_bytes()
    capsys.readouterr()
    assert run(["version", "yank", "pdf", "--reason", "wrong", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["current"] == 2


def test_deleted_skill_is_restored_by_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run/.agents/skills"
    make_skill(folder, "pdf", data=make_skill_md("pdf", "Reads.", "One."))
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(tmp_path / "cache"))
    with closing(open_database_services(Settings.read()._replace(working_directory="."))) as one:
        assert one.skill_store is not None
        bind_actor(one.skill_store, ACTOR).delete("pdf")
    assert run(["version", "bin", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["data"]["skills"]
    assert (row["id"], row["version"]) == ("pdf", 1)
    assert run(["version", "restore", "pdf"]) == 0
    assert "restored pdf@1 as version 2" in capsys.readouterr().err
    assert b"One." in (folder / "pdf/SKILL.md").read_bytes()
    assert run(["version", "purge", "pdf", "--yes"]) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["use", "pdf"], 2, "name it: pdf@N"),
        (["show", "pdf@9"], 4, "has no version 9"),
        (["list", "other"], 4, "there is no skill named 'other'"),
        (["approve", "pdf", "--yes"], 4, "in-review"),
        (["yank", "pdf", "--reason", " "], 3, "reason"),
    ],
)
def test_errors_say_what_to_do(
    skills: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    del skills
    capsys.readouterr()
    assert run(["version", *arguments]) == code
    assert text in capsys.readouterr().err


def test_command_without_the_setting_does_not_end_the_reviews(
    skills: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(skills, "Two.")
    assert run(["version", "list", "pdf"]) == 0
    monkeypatch.delenv("SKILLHALL_REVIEW")
    assert run(["version", "list", "pdf"]) == 3
    assert "off ends the reviews" in capsys.readouterr().err
    monkeypatch.setenv("SKILLHALL_REVIEW", "three")
    assert run(["version", "list", "pdf"]) == 3
    assert "use off, one or two" in capsys.readouterr().err
