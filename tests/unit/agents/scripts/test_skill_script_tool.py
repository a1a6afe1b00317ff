"""The tool `run_skill_script`: which files reach a runner, and what a model sees."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.scripts.script_runner import ProcessResult, ScriptCall
from skillhall._internal.agents.tool_definition import ToolResult
from skillhall.errors import SandboxUnavailable
from tests.support.agents import make_agent
from tests.support.skills import make_skill

SCRIPT = b"#!/bin/sh\necho hi\n"


@dataclass
class RecordingRunner:
    """A runner that runs nothing and remembers its calls, with the files that it saw."""

    result: ProcessResult | Exception = field(default=ProcessResult(exit_code=0, stdout=b"hi\n"))
    calls: list[ScriptCall] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # the mode by path

    def run(self, call: ScriptCall) -> ProcessResult:
        self.calls.append(call)
        files = (path for path in call.folder.rglob("*") if path.is_file())
        self.files = {
            path.relative_to(call.folder).as_posix(): path.stat().st_mode & 0o777 for path in files
        }
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def runner() -> RecordingRunner:
    return RecordingRunner()


@pytest.fixture
def tools(tmp_path: Path, runner: RecordingRunner) -> AgentTools:
    files = {"scripts/hi.sh": SCRIPT, "scripts/.secret": b"s"}
    skill = make_skill(tmp_path / "skills", "greeter", files=files)
    (skill / "scripts/hi.sh").chmod(0o755)
    (skill / "scripts/link.sh").symlink_to("/bin/sh")
    skills = make_agent(tmp_path)
    skills.script_runner = runner
    return AgentTools(skills)


def run(tools: AgentTools, path: str = "scripts/hi.sh", **arguments: object) -> ToolResult:
    return tools.call("run_skill_script", {"name": "greeter", "path": path, **arguments})


def test_agent_without_a_runner_has_no_script_tool(tools: AgentTools) -> None:
    assert tools.tools()[-1].name == "run_skill_script"
    tools.skills.script_runner = None
    assert "run_skill_script" not in [tool.name for tool in tools.tools()]
    assert run(tools).code == "not_found"


def test_agent_without_skills_has_no_script_tool(tmp_path: Path, runner: RecordingRunner) -> None:
    skills = make_agent(tmp_path)
    skills.script_runner = runner
    assert [tool.name for tool in AgentTools(skills).tools()] == ["ReadFile"]


def test_runner_gets_a_private_copy_of_the_files_without_hidden_ones_and_links(
    tools: AgentTools, runner: RecordingRunner, tmp_path: Path
) -> None:
    result = run(tools, "./scripts/hi.sh", arguments=["a b", "-x"])

    [call] = runner.calls
    assert (result.text, result.is_error) == ("Exit code: 0\nOutput:\nhi\n", False)
    assert (call.skill, call.path, call.arguments) == ("greeter", "scripts/hi.sh", ("a b", "-x"))
    assert runner.files == {"SKILL.md": 0o644, "scripts/hi.sh": 0o755}
    assert not call.folder.is_relative_to(tmp_path)
    assert not call.folder.exists()


def test_model_sees_errors_limits_and_at_most_16_kib_of_output(
    tools: AgentTools, runner: RecordingRunner
) -> None:
    runner.result = ProcessResult(exit_code=-9, stdout=b"x" * 20_000, stderr=b"\xff", limit="late")
    result = run(tools)
    assert result.text.startswith("Exit code: -9\nStopped: late\nOutput:\nxxx")
    assert result.text.endswith("x\nErrors:\n�")
    assert len(result.text) < 16_500


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../greeter/scripts/hi.sh", "invalid_path"),
        ("/bin/sh", "invalid_path"),
        ("scripts\\hi.sh", "invalid_path"),
        ("scripts/no.sh", "not_found"),
        ("scripts", "not_found"),
        ("scripts/.secret", "not_found"),
        ("scripts/link.sh", "not_found"),
        ("", "invalid_argument"),
    ],
)
def test_other_paths_than_files_of_the_skill_reach_no_runner(
    path: str, code: str, tools: AgentTools, runner: RecordingRunner
) -> None:
    result = run(tools, path)
    assert (result.is_error, result.code, runner.calls) == (True, code, [])


@pytest.mark.parametrize("arguments", ["-x", [1], ["x"] * 101, {"a": "b"}, None])
def test_arguments_that_are_not_a_list_of_strings_are_refused(
    arguments: object, tools: AgentTools, runner: RecordingRunner
) -> None:
    result = run(tools, arguments=arguments)
    assert result.text == "Error: 'arguments' must be a list of up to 100 strings."
    assert runner.calls == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError("node is not installed"), "node is not installed"),
        (
            SandboxUnavailable("bwrap", "it is not installed"),
            "scripts cannot be run with bwrap: it is not installed",
        ),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_runner_that_cannot_start_the_script_gives_an_error_result(
    error: Exception, text: str, tools: AgentTools, runner: RecordingRunner
) -> None:
    runner.result = error
    result = run(tools)
    expected = (
        f"Error: the script 'scripts/hi.sh' of the skill 'greeter' cannot be started: {text}."
    )
    assert (result.text, result.is_error) == (expected, True)
