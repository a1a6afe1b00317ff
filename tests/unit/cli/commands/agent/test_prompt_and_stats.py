"""`skillhall prompt --agent` and `skillhall stats`, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillhall import Skills
from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.cli.runner import run
from skillhall._internal.render.prompt_plan import USAGE_HINTS
from tests.support.agents import make_agent, make_settings
from tests.support.skills import make_skill, make_skill_md


class CliResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:  # noqa: ANN401 - whatever the command says
        return json.loads(self.out)["data"]


Cli = Callable[..., CliResult]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    return lambda *argv: CliResult(run(argv), *capsys.readouterr())


def write_config(folder: Path, *lines: str) -> None:
    text = ["[[agents]]", 'id = "coding"', *lines, "[[agents.skills]]", 'root = "skills"']
    (folder / "skillhall.toml").write_text("\n".join(text), encoding="utf-8")


def test_prompt_prints_exactly_the_agents_text(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    write_config(tmp_path, 'instructions = "Be brief."')
    result = cli("prompt", "--agent", "coding")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "Be brief.",
        "",
        USAGE_HINTS["load_skill"],
        "",
        "<available_skills>",
        "  <skill>",
        "    <name>pdf</name>",
        "    <description>Reads PDF files.</description>",
        f"    <location>{tmp_path}/skills/pdf/SKILL.md</location>",
        "  </skill>",
        "</available_skills>",
    ]


def test_prompt_matches_the_library_text_and_tokens(cli: Cli, tmp_path: Path) -> None:
    for number in range(90):
        make_skill(tmp_path / "skills", f"skill-{number:02}")
    write_config(tmp_path, "budgets = { catalog = 200 }")
    skills = AgentSkills.from_config("coding", settings=make_settings(tmp_path))
    plan = skills.snapshot().plan
    data = cli("prompt", "--agent", "coding", "--json").data
    assert (data["text"], data["tokens"]) == (skills.system_prompt(), plan.tokens)
    assert cli("prompt", "--agent", "coding").out == f"{skills.system_prompt()}\n"
    assert 190 <= plan.tokens <= 200
    assert [one["shown"] for one in data["skills"]] == [one.detail.value for one in plan.skills]


def test_prompt_of_the_default_agent_needs_no_config(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf")
    text = AgentSkills.of(settings=make_settings(tmp_path)).system_prompt()
    assert cli("prompt", "--agent", "default", "--trust-project").out == f"{text}\n"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    for number in range(90):
        make_skill(tmp_path / "skills", f"skill-{number:02}")
    data = make_skill_md("tide-tables", "Computes high water in a harbour.")
    make_skill(tmp_path / "skills/sea", "tide-tables", data=data)
    return tmp_path / "skills"


def test_prompt_for_a_task_lists_its_skills_first(cli: Cli, many: Path) -> None:
    options = ("--max-tokens", "200", "--for", "high water at noon")
    listing = Skills.load(many).listing(max_tokens=200, task="high water at noon")
    assert cli("prompt", str(many), *options).out == f"{listing}\n"
    data = cli("prompt", str(many), *options, "--json").data
    assert data["text"] == listing
    assert listing.startswith("<available_skills>\n- tide-tables: Computes high water in a harb")
    assert {one["name"] for one in data["skills"]} == {
        line[2:].partition(":")[0] for line in listing.splitlines() if line.startswith("- ")
    }


def test_prompt_of_an_agent_takes_a_task_and_patterns(cli: Cli, many: Path, tmp_path: Path) -> None:
    del many
    write_config(tmp_path, "budgets = { catalog = 200 }", 'excluded = ["skill-0*"]')
    skills = AgentSkills.from_config("coding", settings=make_settings(tmp_path))
    task = ("--for", "high water")
    assert cli("prompt", "--agent", "coding", *task).out == f"{skills.prompt('high water')}\n"
    data = cli("prompt", "--agent", "coding", *task, "--pin", "skill-77", "--json").data
    _, *lines = data["text"].partition("<available_skills>")[2].splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["- skill-77", "- tide-tables"]
    assert data["tokens"] <= data["budget"] == 200
    everything = cli("prompt", "--agent", "coding", "--max-tokens", "9000").out
    assert "<name>tide-tables</name>" in everything
    assert "skill-05" not in everything


def test_prompt_pins_and_excludes_skills_of_folders(cli: Cli, many: Path) -> None:
    options = ("--pin", "sea/*", "--exclude", "skill-[0-8]?", "--exclude", "skill-?0")
    names = [one["name"] for one in cli("prompt", str(many), *options, "--json").data["skills"]]
    assert (names[:2], len(names)) == (["tide-tables", "skill-01"], 82)
    assert cli("prompt", str(many), *options, "--format", "markdown").out.startswith("- **tide")
    assert cli("prompt", str(many), "--max-tokens", "9", "--format", "local").code == 2


def test_prompt_omits_tools_that_the_agent_lacks(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    write_config(tmp_path, 'tools = ["list_skills", "search_skills", "read_skill_file"]')
    assert "load_skill" not in cli("prompt", "--agent", "coding").out
    assert "load_skill" not in cli("tool", "list", "--agent", "coding", "--json").out
    for arguments in ('{"name": "x", "path": "y"}', '{"name": "pdf", "path": "y"}'):
        result = cli("tool", "call", "read_skill_file", arguments, "--agent", "coding")
        assert result.code == 1
        assert "load_skill" not in result.out


def test_prompt_reports_cut_skills_and_token_costs(cli: Cli, tmp_path: Path) -> None:
    for number in range(30):
        make_skill(tmp_path / "skills", f"skill-{number:02}")
    write_config(tmp_path, "budgets = { catalog = 150 }")
    result = cli("prompt", "--agent", "coding")
    assert "\n\n<available_skills>\n- skill-00\n- skill-01\n" in result.out
    assert result.err == "30 skills cut to fit 150 tokens; --json shows them\n"
    data = cli("prompt", "--agent", "coding", "--json").data
    assert data["tokens"] <= data["budget"] == 150
    first = data["skills"][0]
    assert (first["name"], first["shown"]) == ("skill-00", "name")
    assert 0 < first["tokensPerTurn"] < first["tokensPerLoad"]


def test_unmet_requirement_is_a_finding(cli: Cli, tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {bins: [no-such-program]}}}"
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", metadata=needs))
    write_config(tmp_path)
    result = cli("prompt", "--agent", "coding", "--json")
    messages = {
        finding["code"]: finding["message"] for finding in json.loads(result.out)["findings"]
    }
    assert "the program 'no-such-program' is not installed" in messages["requirement-unmet"]
    assert (result.data["skills"], result.data["text"]) == ([], "")


def test_config_error_names_its_line(cli: Cli, tmp_path: Path) -> None:
    write_config(tmp_path, 'tools = ["shell"]')
    result = cli("prompt", "--agent", "coding")
    assert result.code == 3
    assert "skillhall.toml:3: 'agents[0].tools[0]' must be the name of a tool" in result.err


def test_agent_without_config_is_not_found(cli: Cli) -> None:
    result = cli("prompt", "--agent", "coding")
    assert result.code == 4
    assert "agent 'coding' not found" in result.err


def test_prompt_schema_prints_the_json_schema(cli: Cli) -> None:
    assert json.loads(cli("prompt", "--schema").out)["title"] == "Skillhall agent config"


def test_stats_list_the_most_loaded_skills_first(cli: Cli, tmp_path: Path) -> None:
    assert cli("stats") == (0, "", "no usage recorded yet\n")
    for name in ("csv", "pdf"):
        make_skill(tmp_path / "skills", name)
    for name in ("pdf", "csv", "pdf"):
        tools = AgentTools(make_agent(tmp_path))
        tools.system_prompt()
        tools.call("load_skill", {"name": name})
    first, second = cli("stats").out.splitlines()
    assert first.startswith("pdf\t2\t0\t3\t")
    assert second.startswith("csv\t1\t0\t3\t")
    assert cli("stats", "--agent", "unknown", "--json").data == {"skills": []}


def test_tool_call_uses_the_tools_of_an_agent(cli: Cli, tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    write_config(tmp_path, 'tools = ["load_skill"]')
    listed = cli("tool", "list", "--agent", "coding")
    assert [line.partition("\t")[0] for line in listed.out.splitlines()] == ["load_skill"]
    result = cli("tool", "call", "load_skill", '{"name": "pdf"}', "--agent", "coding")
    assert result.out.startswith('<skill_content name="pdf">\n# Steps')
    assert not (tmp_path / "data").exists()


def test_default_agent_needs_no_config(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLHALL_TRUST_PROJECT", "on")
    make_skill(tmp_path / ".agents/skills", "pdf")
    result = cli("tool", "call", "list_skills", "{}", "--agent", "default", "--json")
    assert result.data["answer"]["skills"][0]["name"] == "pdf"
