"""Give skills to an agent of CrewAI by MCP, because CrewAI needs an environment of its own.

    .venv/bin/python -m tests.support.framework_agents.crewai_by_mcp

installs CrewAI below `build/frameworks`, runs an agent with a scripted model and `skillhall mcp`,
and fails unless the model loads and reads a skill. It is not a test of the suite: CrewAI takes 0.8
GB and a minute to install.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.model_server import ModelRequest, ToolCall, Turn, model_server
from tests.support.skills import make_skill, make_skill_md

PACKAGE = "crewai==1.15.30"
_FOLDER = Path(__file__).parents[3] / "build" / "frameworks" / "crewai"
ANSWER = "Totals come first."
SCRIPT = (
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "references/layout.md"}),
    ToolCall("load_skill", {"name": "csv-rapport"}),
)
# Runs in the other environment.
PROGRAM = """
import sys

from crewai import LLM, Agent
from crewai.mcp import MCPServerStdio

server = MCPServerStdio(command="skillhall", args=["mcp", "skills"])
model = LLM(model="openai/gpt-4.1", base_url=sys.argv[1], api_key="test-key")
agent = Agent(role="Reporter", goal="Report.", backstory="You report.", llm=model, mcps=[server])
print(agent.kickoff("Summarise the sales.").raw)
"""


def reply(request: ModelRequest) -> Turn:
    """Return the next turn, with the name that CrewAI gave the tool: the command, then ours."""
    done = len(request.tool_results)
    if done == len(SCRIPT):
        return ANSWER
    (name,) = (name for name in request.tools if name.endswith(SCRIPT[done].tool))
    return SCRIPT[done]._replace(tool=name)


def main() -> None:
    """Run the agent and check what the model got."""
    python = _prepare_python()
    with tempfile.TemporaryDirectory() as folder, model_server(function=reply) as server:
        data = make_skill_md("csv-report", "Summarises CSV files.", "# Read the layout first\n")
        files = {"references/layout.md": b"Totals first.\n"}
        make_skill(Path(folder, "skills"), "csv-report", data=data, files=files)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        subprocess.run(
            [python, "-c", PROGRAM, f"{server.url}/v1"],
            check=True,
            cwd=folder,
            env={**os.environ, "PATH": path, "CREWAI_DISABLE_TELEMETRY": "true"},
        )
        loaded, read, wrong = server.requests[-1].tool_results
    assert "# Read the layout first" in loaded
    assert read.rstrip() == "Totals first."
    assert "csv-report" in wrong  # CrewAI checks arguments itself, and lists the names


def _prepare_python() -> str:
    python = _FOLDER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_FOLDER)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    return str(python)


if __name__ == "__main__":
    main()
