"""The commands `skillhall session`, `backup` and `restore`."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill


class Terminal:
    """Runs commands in a folder with its own database."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capture = capture

    def run(self, *arguments: str, code: int = 0) -> str:
        self.capture.readouterr()
        assert run(arguments) == code, self.capture.readouterr().err
        captured = self.capture.readouterr()
        return captured.out if code == 0 else captured.err

    def json(self, *arguments: str, code: int = 0) -> Any:  # noqa: ANN401 - JSON
        self.capture.readouterr()
        assert run([*arguments, "--json"]) == code
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
    return [block["content"] for block in blocks]


def test_session_context_contains_imported_and_moved_blocks(terminal: Terminal) -> None:
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


def test_undo_restores_a_removed_block_with_its_edit(terminal: Terminal) -> None:
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


def test_existing_skill_is_replaced_only_with_replace(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    file = terminal.folder / "pdf.md"
    file.write_text("---\nname: pdf\ndescription: d\n---\nold\n", encoding="utf-8")
    terminal.run("session", "import", "Research", "pdf.md")
    file.write_text("---\nname: pdf\ndescription: d\n---\nnew\n", encoding="utf-8")
    rejected = terminal.json("session", "import", "Research", "pdf.md", code=6)
    assert "--replace" in rejected["error"]["hint"]
    assert contents(terminal) == ["old"]
    terminal.run("session", "import", "Research", "pdf.md", "--replace")
    assert contents(terminal) == ["new"]


def test_templates_and_snapshots_are_used_by_name(terminal: Terminal) -> None:
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


def test_exported_session_can_be_opened_and_added(terminal: Terminal) -> None:
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


def test_folder_scan_requires_the_setting(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected = terminal.json("session", "scan", code=8)
    assert "SKILLHALL_FOLDER_SCAN" in rejected["error"]["hint"]
    monkeypatch.setenv("SKILLHALL_FOLDER_SCAN", "on")
    make_skill(Path("~/.claude/skills").expanduser(), "pdf")
    [row] = terminal.json("session", "scan")["data"]["skills"]
    assert (row["id"], row["accepted"]) == ("pdf", True)


def test_incomplete_backup_is_rejected_without_changes(
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
    data = (terminal.folder / "all.backup").read_bytes()
    (terminal.folder / "half.backup").write_bytes(data[: len(data) // 2])
    terminal.run("restore", "half.backup", "--overwrite", code=3)
    assert contents(terminal) == ["a"]


def test_backup_and_restore_tell_what_they_do(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.run("session", "new", "Research")
    assert terminal.json("backup", "all.backup")["data"]["leftOut"]
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", f"sqlite:///{terminal.folder}/other.db")
    shown = terminal.run("restore", "all.backup", "--dry-run")
    assert "would be restored" in shown
    assert "sessions added: 1\n  Research\n" in shown
    report = terminal.json("restore", "all.backup", "--dry-run")["data"]
    assert (report["dryRun"], report["changes"]["sessions"]["added"]) == (True, ["Research"])
    assert terminal.json("session", "list")["data"] == {"sessions": []}


def test_backup_of_sqlite_is_restored_to_postgresql(
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
def test_database_errors_do_not_show_the_password(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, url: str, code: int
) -> None:
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", url)
    output = terminal.run("session", "list", code=code)
    assert "secret-planted" not in output
    assert "Traceback" not in output


@pytest.mark.parametrize("content", [b"this is no database, " * 100, b"SQLite format 3\0 damaged"])
def test_file_that_is_not_a_database_is_left_unchanged(terminal: Terminal, content: bytes) -> None:
    file = terminal.folder / "data" / "skillhall.db"
    file.parent.mkdir()
    file.write_bytes(content)
    terminal.run("session", "list", code=7)
    assert file.read_bytes() == content


def test_newer_database_is_rejected_with_a_hint(terminal: Terminal) -> None:
    terminal.run("session", "new", "Research")
    file = terminal.folder / "data" / "skillhall.db"
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'later')")
    connection.close()
    assert "update Skillhall" in terminal.run("session", "list", code=7)
    assert (file.stat().st_mode & 0o777) == 0o600
