"""`skillhall local` and `skillhall tool`, run in this process."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill, make_skill_md


class Cli:
    """Runs commands in a folder and stores the output of the last one."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *argv: str) -> int:
        code = run(argv)
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *argv: str) -> dict[str, Any]:
        self(*argv, "--json")
        report: dict[str, Any] = json.loads(self.out)
        assert report["command"] == " ".join(argv[:2])
        return report


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(capsys)


class Terminal(io.StringIO):
    """A terminal on which a user types answers."""

    def isatty(self) -> bool:
        return True


def ids(cli: Cli) -> list[str]:
    return [skill["id"] for skill in cli.json("local", "list")["data"]["skills"]]


# local


def test_local_add_list_and_delete(cli: Cli) -> None:
    argv = ["--name", "My notes", "--description", "Notes: all.", "--body", "Write."]
    assert cli("local", "add", "Notes!", *argv) == 0
    assert cli.out == "notes\n"
    assert cli("local", "list") == 0
    assert cli.out == "notes\tMy notes\tNotes: all.\tuser\n"
    assert cli.json("local", "list")["data"]["skills"] == [
        {"id": "notes", "name": "My notes", "description": "Notes: all.", "source": "user"}
    ]
    assert cli("local", "delete", "notes", "-y") == 0
    assert ids(cli) == []


def test_local_add_reads_the_body_from_stdin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe."))
    cli("local", "add", "a", "--description", "A.", "--body", "-")
    assert Path(".agents/skills/a/SKILL.md").read_bytes().endswith(b"---\nFrom a pipe.")


def test_root_option_selects_the_run_directory(cli: Cli) -> None:
    Path("run").mkdir()
    assert cli("local", "add", "a", "--description", "A.", "--root", "run") == 0
    assert Path("run/.agents/skills/a/SKILL.md").exists()
    assert cli("local", "list", "--root", "none") == 2


@pytest.mark.parametrize(
    ("argv", "code", "error"),
    [
        (["add", "pdf", "--description", "D."], 6, "conflict"),
        (["add", "..", "--description", "D."], 3, "invalid_path"),
        (["add", "x", "--description", " "], 3, "invalid_skill"),
        (["import", "./skill", "--id", "PDF"], 6, "conflict"),
        (["import", "./broken"], 3, "invalid_skill"),
        (["import", "./none"], 4, "not_found"),
        (["delete", "pfd", "-y"], 4, "not_found"),
        (["delete", "theirs", "-y"], 6, "read_only"),
        (["delete", "pdf"], 2, "usage"),
        (["import", "."], 2, "usage"),
    ],
)
def test_rejected_command_has_its_code_and_changes_nothing(
    cli: Cli, argv: list[str], code: int, error: str
) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    make_skill(Path(".agents/sys.skills"), "theirs")
    make_skill(Path(), "skill")
    make_skill(Path(), "broken", data=b"# Nothing\n")
    assert cli("local", *argv) == code
    assert cli.json("local", *argv)["error"]["code"] == error
    assert ids(cli) == ["theirs", "pdf"]


def test_confirmation_without_a_terminal_names_the_option(cli: Cli) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    cli("local", "delete", "pdf")
    assert "-y" in cli.err
    assert "pdf" in cli.err


@pytest.mark.parametrize(("typed", "left"), [("y\n", []), ("n\n", ["pdf"])])
def test_local_delete_asks_for_confirmation(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, left: list[str]
) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("CI", raising=False)
    cli("local", "delete", "pdf")
    assert "Delete the user skill 'pdf' with all its files?" in cli.err
    assert ids(cli) == left


def test_local_import_replaces_with_the_option(cli: Cli) -> None:
    make_skill(Path("source"), "a")
    make_skill(Path("source"), "b")
    report = cli.json("local", "import", "./source", "-y")
    assert [item["id"] for item in report["data"]["imported"]] == ["a", "b"]
    make_skill(Path("other"), "a", data=make_skill_md("a", "Newer."))
    report = cli.json("local", "import", "./other", "--replace")
    assert report["data"]["replaced"] == ["a"]
    assert b"Newer." in Path(".agents/skills/a/SKILL.md").read_bytes()


@pytest.mark.parametrize(("typed", "text"), [("y\n", b"Newer."), ("n\n", b"Reads PDF files.")])
def test_local_import_asks_before_replacing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, text: bytes
) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    make_skill(Path("source"), "pdf", data=make_skill_md("pdf", "Newer."))
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("CI", raising=False)
    cli("local", "import", "./source")
    assert "pdf already exists. Replace it?" in cli.err
    assert text in Path(".agents/skills/pdf/SKILL.md").read_bytes()


def test_local_setup_installs_the_system_skills(cli: Cli) -> None:
    make_skill(Path(".agents/sys.skills"), "writing-skills")
    assert cli("local", "setup") == 0
    assert cli.out == "checking-skills\n"
    assert "skipped writing-skills" in cli.err
    assert cli.json("local", "setup")["data"] == {
        "written": [],
        "unchanged": ["checking-skills"],
        "leftAlone": ["writing-skills"],
    }


def test_local_list_reports_rejected_skills(cli: Cli) -> None:
    make_skill(Path(".agents/skills"), "broken", data=b"# Nothing\n")
    assert cli("local", "list") == 0
    assert "reject[no-frontmatter]" in cli.err


def test_local_commands_delete_leftovers_of_killed_processes(cli: Cli) -> None:
    make_skill(Path(".agents/skills"), ".skillhall-old-pdf", data=make_skill_md("pdf"))
    assert ids(cli) == ["pdf"]


@pytest.mark.parametrize("group", ["local", "tool"])
def test_group_without_subcommand_prints_help(cli: Cli, group: str) -> None:
    assert cli(group) == 0
    assert "list" in cli.out
    assert cli(group, "nonsense") == 2
    assert "no such command 'nonsense'" in cli.err


# tool


def test_tool_list_has_schemas(cli: Cli) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    assert cli("tool", "list") == 0
    names = [line.partition("\t")[0] for line in cli.out.splitlines()]
    tools = cli.json("tool", "list")["data"]["tools"]
    assert names == [tool["name"] for tool in tools]
    assert names == ["ReadFile", "ReadSkill", "ListSkillFiles", "Skill"]
    assert tools[0]["parameters"]["required"] == ["path"]


@pytest.mark.parametrize("text", ["Line.\n", "No line end"])
def test_tool_call_prints_exactly_the_result(cli: Cli, text: str) -> None:
    Path("a.md").write_text(text, encoding="utf-8")
    assert cli("tool", "call", "ReadFile", '{"path": "a.md"}') == 0
    assert cli.out == text.removesuffix("\n") + "\n"
    assert cli.err == ""
    data = cli.json("tool", "call", "ReadFile", '{"path": "a.md"}')["data"]
    assert data == {"tool": "ReadFile", "answer": text, "isError": False}


def test_tool_call_error_is_printed_and_exits_with_1(cli: Cli) -> None:
    assert cli("tool", "call", "ReadFile", '{"path": "../x.md"}') == 1
    assert cli.out == "Error: path must be under the run directory.\n"
    assert cli.err == ""
    assert cli("tool", "call", "ReadFile") == 1
    assert cli.out == "Error: path is required.\n"
    report = cli.json("tool", "call", "ReadFile", "[]")
    assert (report["ok"], report["data"]["isError"]) == (False, True)


def test_skill_tool_prints_json(cli: Cli) -> None:
    make_skill(Path(".agents/skills"), "pdf")
    assert cli("tool", "call", "Skill", '{"name": "pdf"}') == 0
    assert json.loads(cli.out)["instructions"] == "# Steps"
    assert cli("tool", "call", "Skill", '{"name": "pfd"}') == 1
    assert "error" in json.loads(cli.out)


def test_unknown_tool_suggests_similar_names(cli: Cli) -> None:
    assert cli("tool", "call", "read_file", "{}") == 4
    assert "'ReadFile'" in cli.err
    assert cli("tool", "call", "zzz", "{}") == 4
    assert "available tools: ReadFile, ReadSkill, ListSkillFiles" in cli.err
    assert cli.json("tool", "call", "zzz", "{}")["error"]["code"] == "not_found"


@pytest.mark.parametrize("text", ["{", "", "nonsense", "[" * 100_000])
def test_invalid_json_arguments_are_a_usage_error(cli: Cli, text: str) -> None:
    assert cli("tool", "call", "ReadFile", text) == 2
    assert "the arguments are not valid JSON" in cli.err
