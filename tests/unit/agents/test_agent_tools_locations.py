"""Every location in an agent's system prompt can be read with the tools that the agent has."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.render.escape import unescape
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.agents import make_agent, make_settings
from tests.support.skills import make_skill, make_skill_md

READ_FILE = ("ReadFile",)


def read(tools: AgentTools, path: str) -> str:
    return str(tools.call("ReadFile", {"path": path}).content)


def locations(text: str) -> Sequence[str]:
    return re.findall("<location>(.*?)</location>", text)


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that is not below the run directory."""
    return tmp_path_factory.mktemp("elsewhere")


def test_read_file_reads_every_location_in_the_prompt(tmp_path: Path, outside: Path) -> None:
    make_skill(tmp_path / "skills", "inside")
    make_skill(tmp_path / ".claude/skills", "in-a-hidden-folder")
    make_skill(outside, "outside")
    make_skill(outside, "R&D: notes.", data=make_skill_md("odd"))
    sources = map(InstructionSource, ("skills", ".claude/skills", str(outside)))
    tools = AgentTools(make_agent(tmp_path, *sources, tools=READ_FILE))
    paths = locations(tools.system_prompt())
    assert len(paths) == 4
    for path in paths:
        assert read(tools, path).startswith("---\nname: ")
        assert read(tools, unescape(path)) == read(tools, path)


def test_read_file_reads_other_files_of_listed_skills(tmp_path: Path, outside: Path) -> None:
    files = {"references/a.md": b"A.\n", ".env.md": b"secret", "run.sh": b"true"}
    folder = make_skill(outside, "pdf", files=files)
    (outside / "private.md").write_text("secret", encoding="utf-8")
    (folder / "link.md").symlink_to("../private.md")
    tools = AgentTools(make_agent(tmp_path, InstructionSource(str(outside)), tools=READ_FILE))
    assert read(tools, f"{folder}/references/a.md") == "A.\n"
    assert read(tools, f"{folder}/references//../references/a.md ") == "A.\n"
    assert read(tools, f"{folder}/run.sh").startswith("Error: file type not allowed.")
    for path in (".env.md", "link.md", "absent.md"):
        assert read(tools, f"{folder}/{path}") == "Error: file not found."
    for path in (f"{outside}/private.md", f"{folder}/../private.md", f"{folder}x/SKILL.md"):
        assert read(tools, path) == "Error: path must be under the run directory."


def test_read_file_does_not_read_hidden_skills(tmp_path: Path, outside: Path) -> None:
    hidden = make_skill_md("quiet", disable_model_invocation="true")
    folder = make_skill(outside, "quiet", data=hidden)
    make_skill(outside, "pdf")
    tools = AgentTools(make_agent(tmp_path, InstructionSource(str(outside)), tools=READ_FILE))
    assert read(tools, f"{folder}/SKILL.md") == "Error: path must be under the run directory."


def test_read_file_reads_the_default_folders(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "one")
    make_skill(tmp_path / ".claude/skills", "two")
    make_skill(Path.home() / ".agents/skills", "three")
    tools = AgentTools(AgentSkills.of(settings=make_settings(tmp_path)))
    paths = locations(tools.system_prompt())
    assert [read(tools, path).splitlines()[1] for path in paths] == [
        "name: one",
        "name: two",
        "name: three",
    ]


def test_read_file_reads_listed_skills_of_any_file_type(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"a.md": b"A."})
    skills = make_agent(tmp_path, tools=READ_FILE, read_extensions=(".sql",))
    tools = AgentTools(skills)
    (path,) = locations(tools.system_prompt())
    assert read(tools, path).startswith("---\nname: pdf\n")
    error = "Error: file type not allowed. Allowed: .sql"
    assert read(tools, path.replace("SKILL.md", "a.md")) == error


def test_read_file_reads_files_of_a_custom_catalog(tmp_path: Path, outside: Path) -> None:
    make_skill(outside, "pdf", files={"a.md": b"A."})
    catalog = load_catalog([str(outside)])
    tools = ReadTools(str(tmp_path), catalog=lambda: catalog)
    paths = [line.rpartition(" (")[0] for line in tools.list_skill_files("pdf").splitlines()]
    assert [tools.read_file(path)[:9] for path in paths] == ["---\nname:", "A."]


def test_read_file_reads_paths_from_the_skill_tool(tmp_path: Path) -> None:
    make_skill(
        Path.home() / ".skillhall/skills", "pdf", files={"a.md": b"A.", ".env.md": b"secret"}
    )
    tools = tools_for(tmp_path, make_settings(tmp_path))
    message = dict(cast("Mapping[str, str]", tools["Skill"]({"name": "pdf"})))["message"]
    folder = message.removesuffix(".").rpartition(" ")[2]
    assert tools["ReadFile"]({"path": f"{folder}/a.md"}) == "A."
    assert tools["ReadFile"]({"path": f"{folder}/.env.md"}) == "Error: file not found."


def test_search_returns_locations_if_only_read_file_is_available(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    tools = AgentTools(make_agent(tmp_path, tools=("search_skills", "list_skills", "ReadFile")))
    for name, arguments in (("search_skills", {"query": "pdf"}), ("list_skills", {})):
        content = cast("dict[str, Any]", tools.call(name, arguments).content)
        (hit,) = content["skills"]
        assert read(tools, hit["location"]).startswith("---\nname: pdf\n")
