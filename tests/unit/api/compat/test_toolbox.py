from pathlib import Path

import pytest

from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.settings import Settings
from tests.support.skills import make_skill


def test_every_tool_has_a_schema_and_a_description(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents" / "skills", "pdf")
    tools = tools_for(str(tmp_path), Settings(str(tmp_path), str(tmp_path / "cache")))
    assert list(tools) == ["ReadFile", "ReadSkill", "ListSkillFiles", "Skill"]
    for tool in tools.values():
        assert tool.description
        assert tool.parameters["type"] == "object"
        assert tool.parameters["additionalProperties"] is False


def test_no_skill_tool_without_skills(tmp_path: Path) -> None:
    assert "Skill" not in tools_for(str(tmp_path))


@pytest.mark.parametrize("folder", [".agents/sys.skills", ".agents/skills", ".skills"])
def test_skill_tool_finds_skills_of_the_run_directory(tmp_path: Path, folder: str) -> None:
    make_skill(tmp_path / folder, "pdf")
    answer = tools_for(str(tmp_path))["Skill"].call({"name": "pdf"})
    assert not answer.is_error
    assert isinstance(answer.content, dict)
    assert answer.content["instructions"] == "# Steps"


@pytest.mark.parametrize("arguments", [None, [], {}, {"name": ["pdf"]}, {"name": "pfd"}])
def test_skill_tool_accepts_arguments_of_any_type(tmp_path: Path, arguments: object) -> None:
    make_skill(tmp_path / ".skills", "pdf")
    tool = tools_for(str(tmp_path))["Skill"]
    answer = tool.call(arguments)
    assert answer.is_error
    assert "Available skills: pdf" in str(answer.content)
    assert tool(arguments) == answer.content
