"""`skillhall session`, `backup` and `restore`, as people and scripts use them."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill


class Terminal:
    """Runs commands in a folder with a database of its own."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capture = capture

    def run(self, *words: str, code: int = 0) -> str:
        self.capture.readouterr()
        assert run(words) == code, self.capture.readouterr().err
        told = self.capture.readouterr()
        return told.out if code == 0 else told.err

    def json(self, *words: str, code: int = 0) -> Any:  # noqa: ANN401 - what the command says
        self.capture.readouterr()
        assert run([*words, "--json"]) == code
        return json.loads(self.capture.readouterr().out)


@pytest.fixture
def terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return Terminal(tmp_path, capfd)


def contents(terminal: Terminal, session: str = "Research") -> list[str]:
    blocks = terminal.json("session", "show", session)["data"]["blocks"]
    return [one["content"] for one in blocks]


def test_a_session_is_made_filled_moved_and_read(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research", "--budget", "2")
    terminal.run("session", "add", "Research", "note", "work on it")
    make_skill(terminal.folder / "skills", "pdf")
    terminal.run("session", "import", "Research", "./skills/pdf")
    block = terminal.json("session", "show", "Research", "--type", "skill")["data"]["blocks"][0]
    assert block["metadata"]["sourceType"] == "local"
    terminal.run("session", "move", "Research", "pdf", "--zone", "permanent")
    text = terminal.run("session", "context", "Research")
    assert text == f"{block['content']}\n\nwork on it\n"
    data = terminal.json("session", "context", "Research")["data"]
    assert data["spending"][-1]["over"] is True
    assert data["tokensAreEstimates"] is True


def test_a_removed_block_is_brought_back_and_an_edit_is_kept(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    first = terminal.run("session", "add", "Research", "note", "a").strip()
    terminal.run("session", "add", "Research", "note", "b", "--before", first)
    terminal.run("session", "edit", "Research", first, "A")
    assert contents(terminal) == ["b", "A"]
    terminal.run("session", "remove", "Research", first)
    assert contents(terminal) == ["b"]
    terminal.run("session", "undo", "Research")
    assert contents(terminal) == ["b", "A"]
    assert terminal.json("session", "undo", "Research", code=4)["error"]["code"] == "not_found"


def test_a_skill_that_is_there_is_replaced_only_when_that_is_said(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    file = terminal.folder / "pdf.md"
    file.write_text("---\nname: pdf\ndescription: d\n---\nold\n", encoding="utf-8")
    terminal.run("session", "import", "Research", "pdf.md")
    file.write_text("---\nname: pdf\ndescription: d\n---\nnew\n", encoding="utf-8")
    refused = terminal.json("session", "import", "Research", "pdf.md", code=6)
    assert "--replace" in refused["error"]["hint"]
    assert contents(terminal) == ["old"]
    terminal.run("session", "import", "Research", "pdf.md", "--replace")
    assert contents(terminal) == ["new"]


def test_templates_and_snapshots_work_by_name(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    terminal.run("session", "add", "Research", "note", "a")
    terminal.run("session", "template", "save", "Research", "Start")
    terminal.run("session", "snapshot", "Research", "clean")
    terminal.run("session", "new", "Second", "--template", "Start")
    terminal.run("session", "template", "apply", "Start", "Second", "--replace")
    assert contents(terminal, "Second") == ["a"]
    terminal.run("session", "add", "Research", "note", "b")
    terminal.run("session", "template", "save", "Research", "Start", "--update")
    terminal.run("session", "restore", "Research", "clean")
    assert contents(terminal) == ["a"]
    terminal.run("session", "template", "apply", "Start", "Research")
    assert contents(terminal) == ["a", "a", "b"]
    terminal.run("session", "template", "delete", "Start")
    assert terminal.json("session", "template", "list")["data"] == {"templates": []}


def test_an_exported_session_is_opened_again(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    terminal.run("session", "add", "Research", "note", "a")
    assert terminal.run("session", "export", "Research") == "research.zip\n"
    assert "--overwrite" in terminal.run("session", "export", "Research", code=6)
    terminal.run("session", "open", "research.zip", "--name", "Again")
    assert contents(terminal, "Again") == ["a"]
    terminal.run("add", "research.zip", "--dir", "out", "--yes")
    terminal.run("validate", "--profile", "specification", "out/research")
    assert terminal.run("session", "delete", "Again", "--yes") == ""
    assert "session not found: 'Again'" in terminal.run("session", "show", "Again", code=4)


def test_folders_are_scanned_only_where_that_is_allowed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = terminal.json("session", "scan", code=8)
    assert "SKILLHALL_FOLDER_SCAN" in refused["error"]["hint"]
    monkeypatch.setenv("SKILLHALL_FOLDER_SCAN", "on")
    make_skill(Path("~/.claude/skills").expanduser(), "pdf")
    [row] = terminal.json("session", "scan")["data"]["skills"]
    assert (row["id"], row["accepted"]) == ("pdf", True)


def test_a_backup_is_restored_whole_or_not_at_all(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.run("session", "new", "Research")
    terminal.run("session", "add", "Research", "note", "a")
    terminal.run("backup", "all.backup")
    assert "--overwrite" in terminal.run("backup", "all.backup", code=6)
    assert "--overwrite" in terminal.run("restore", "all.backup", code=6)
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", f"sqlite:///{terminal.folder}/other.db")
    assert terminal.json("restore", "all.backup")["data"]["rows"] > 1
    assert contents(terminal) == ["a"]
    whole = (terminal.folder / "all.backup").read_bytes()
    (terminal.folder / "half.backup").write_bytes(whole[: len(whole) // 2])
    terminal.run("restore", "half.backup", "--overwrite", code=3)
    assert contents(terminal) == ["a"]


def test_a_backup_goes_from_sqlite_to_postgresql(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    terminal.run("session", "new", "Moved")
    terminal.run("session", "add", "Moved", "note", "ä")
    terminal.run("backup", "all.backup")
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", postgres)
    terminal.run("restore", "all.backup", "--overwrite")
    assert contents(terminal, "Moved") == ["ä"]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("nonsense", 3),
        ("mysql://user:secret-planted@host/db", 3),
        ("sqlite://", 3),
        ("postgresql://user:secret-planted@127.0.0.1:1/x", 7),
    ],
)
def test_a_database_that_cannot_be_used_is_told_without_its_password(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, url: str, code: int
) -> None:
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", url)
    told = terminal.run("session", "list", code=code)
    assert "secret-planted" not in told
    assert "Traceback" not in told


@pytest.mark.parametrize("content", [b"this is no database, " * 100, b"SQLite format 3\0 damaged"])
def test_a_file_that_is_no_database_is_left_alone(terminal: Terminal, content: bytes) -> None:
    file = terminal.folder / "data" / "skillhall.db"
    file.parent.mkdir()
    file.write_bytes(content)
    terminal.run("session", "list", code=7)
    assert file.read_bytes() == content


def test_a_newer_database_is_refused_with_what_to_do(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    file = terminal.folder / "data" / "skillhall.db"
    with sqlite3.connect(file) as line:
        line.execute("INSERT INTO schema_migrations VALUES (99, 'later')")
    line.close()
    assert "update Skillhall" in terminal.run("session", "list", code=7)
    assert (file.stat().st_mode & 0o777) == 0o600
