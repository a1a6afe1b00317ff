"""Give skills to an agent of Strands Agents, which cannot share our environment.

    .venv/bin/python -m tests.support.framework_agents.strands_by_mcp

installs Strands below `build/frameworks` and runs two agents with a scripted model: one with
`skillhall mcp`, one with its own plugin and the skills of `Skills.load`. It fails unless the model
finds, loads and reads a skill. Not a test of the suite: Strands needs 127 MB.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.model_server import ToolCall, Turn, model_server
from tests.support.skills import make_skill, make_skill_md

PACKAGE = "strands-agents[openai]==1.62.0"
_ROOT = Path(__file__).parents[3]
_FOLDER = _ROOT / "build" / "frameworks" / "strands"
ANSWER = "Totals come first."
# They run in the other environment, where `skillhall` has no extra.
MODEL = """
import sys
from strands import Agent
from strands.models.openai import OpenAIModel

url, python, folder = sys.argv[1:]
model = OpenAIModel(client_args={"api_key": "test-key", "base_url": url}, model_id="scripted")
"""
BY_MCP = f"""{MODEL}
from mcp import StdioServerParameters, stdio_client
from strands.tools.mcp import MCPClient

server = StdioServerParameters(command=python, args=["-m", "skillhall", "mcp", folder])
agent = Agent(model, tools=[MCPClient(lambda: stdio_client(server))], callback_handler=None)
print(agent("Summarise the sales."))
"""
BY_PLUGIN = f"""{MODEL}
from strands.vended_plugins.skills import AgentSkills, Skill
from skillhall import Skills

loaded = Skills.load(folder).values()
own = [Skill.from_content(skill.read_bytes("SKILL.md").decode()) for skill in loaded]
agent = Agent(model, plugins=[AgentSkills(skills=own)], callback_handler=None)
print(agent("Summarise the sales."))
"""
CALLS_BY_MCP = (
    ToolCall("search_skills", {"query": "csv"}),
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "references/layout.md"}),
    ToolCall("load_skill", {"name": "csv-rapport"}),
)
CALLS_BY_PLUGIN = (ToolCall("skills", {"skill_name": "csv-report"}),)


def main() -> None:
    """Run both agents and check what the model got."""
    python = _prepare_python()
    with tempfile.TemporaryDirectory() as folder:
        data = make_skill_md("csv-report", "Summarises CSV files.", "# Read the layout first\n")
        files = {"references/layout.md": b"Totals first.\n"}
        make_skill(Path(folder), "csv-report", data=data, files=files)
        found, loaded, read, wrong = _run(python, BY_MCP, folder, *CALLS_BY_MCP, ANSWER)
        assert json.loads(found)["skills"][0]["name"] == "csv-report", found
        assert "# Read the layout first" in loaded, loaded
        assert read == "Totals first.\n", read
        assert wrong.startswith("Error: there is no skill 'csv-rapport'"), wrong
        [activated] = _run(python, BY_PLUGIN, folder, *CALLS_BY_PLUGIN, ANSWER)
        assert "# Read the layout first" in activated, activated
    print("both agents of Strands found and read the skill")  # noqa: T201 - for a person


def _run(python: str, program: str, folder: str, *script: Turn) -> list[str]:
    """Run an agent and return the results of its tools."""
    with model_server(*script) as server:
        command = [python, "-c", program, f"{server.url}/v1", sys.executable, folder]
        reply = subprocess.run(command, check=True, capture_output=True, text=True)
        assert reply.stdout.strip() == ANSWER, reply.stdout
        return server.requests[-1].tool_results


def _prepare_python() -> str:
    python = str(_FOLDER / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(_FOLDER)], check=True)
        install = [python, "-m", "pip", "install", "--quiet", PACKAGE, str(_ROOT)]
        subprocess.run(install, check=True)
    return python


if __name__ == "__main__":
    main()
