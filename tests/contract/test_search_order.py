"""All surfaces search the same skills in the same order."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp_types import CallToolResult, TextContent

from skillhall import Skills
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from tests.support.agents import make_agent
from tests.support.agents import make_settings as make_agent_settings
from tests.support.catalogs import wait_for_indexing
from tests.support.mcp_clients import make_folder_server, run_client, run_http_client
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import RunningServer, make_settings, run_server
from tests.support.skills import make_skill, make_skill_md

SKILLS = {
    "tides": ("Nothing.", "Nothing.\n"),
    "near": ("Tides of a coast, with charts.", "## Moon\nThe moon and the sun.\n"),
    "far": ("Plans a trip.", "The tides and the moon.\n"),
    "moon-phases": ("Computes phases.", "Nothing.\n"),
    "xlsx": ("Edits Excel files.", "Formulas.\n"),
    "slide-excellence": ("Excellent slides.", "Charts of a coast.\n"),
}
QUERIES = (
    *("tides", "moon", "excel", "tide charts", "mooon", "todo tides"),
    "When is the best day of next week to walk along the coast, given the tides and the moon?",
)


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "run/.agents/skills"
    for name, (description, body) in SKILLS.items():
        make_skill(folder, name, data=make_skill_md(name, description, body))
    return folder


@pytest.fixture
def server(skills: Path) -> Iterator[RunningServer]:
    settings = make_agent_settings(skills.parents[1])
    collection = Collection(FolderStore(skills.parents[1]), settings)
    services = Services(MemoryPromptService(), collection)
    with run_server(settings=make_settings(), services=services) as running:
        running.request("GET", "/api/v1/skills")
        wait_for_indexing()
        yield running


def search_library(skills: Path, text: str) -> list[str]:
    return [hit.skill.name for hit in Skills.load(skills).search(text)]


def search_rest(server: RunningServer, text: str) -> list[str]:
    found = server.request("GET", f"/api/v1/skills?q={quote(text)}").json["data"]
    return [skill["name"] for skill in found["skills"]]


def search_page(server: RunningServer, text: str) -> list[str]:
    page = server.request("GET", f"/skills?q={quote(text)}").body.decode()
    return re.findall(r'class="name" href="/skill/([a-z-]+)"', page)


def search_served_mcp(server: RunningServer, text: str) -> list[str]:
    arguments = {"query": text}
    result = run_http_client(
        server.port, lambda client: client.call_tool("search_skills", arguments)
    )
    return read_mcp_names(result)


def search_mcp(skills: Path, text: str) -> list[str]:
    arguments = {"query": text}
    result = run_client(
        make_folder_server(skills), lambda client: client.call_tool("search_skills", arguments)
    )
    return read_mcp_names(result)


def search_agent(skills: Path, text: str) -> list[str]:
    agent = make_agent(skills.parent, InstructionSource(str(skills)))
    return read_names(AgentTools(agent).call("search_skills", {"query": text}).text)


def read_mcp_names(result: CallToolResult) -> list[str]:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return read_names(content.text)


def read_names(text: str) -> list[str]:
    return [skill["name"] for skill in json.loads(text)["skills"]]


def test_every_surface_finds_the_same_skills_in_the_same_order(
    skills: Path, server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in QUERIES:
        assert run(["search", text, "--json", "-r", str(skills)]) == 0
        hits = json.loads(capsys.readouterr().out)["data"]["hits"]
        expected = [hit["name"] for hit in hits]
        assert expected
        found = {
            "library": search_library(skills, text),
            "REST": search_rest(server, text),
            "page": search_page(server, text),
            "MCP of a server": search_served_mcp(server, text),
            "MCP of folders": search_mcp(skills, text),
            "agent": search_agent(skills, text),
        }
        assert found == dict.fromkeys(found, expected), text
