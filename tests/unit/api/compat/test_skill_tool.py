from pathlib import Path

from skillhall._internal.api.compat.sandbox import MemorySandbox, setup_agent_environment
from skillhall._internal.api.compat.skill_tool import SkillTool, create_skill_tool
from skillhall._internal.api.compat.skills_module import SkillBundle, SkillMetadata, discover_skills
from tests.support.skills import make_skill, make_skill_md


def tool_in_memory(**fields: str) -> SkillTool:
    sandbox = MemorySandbox()
    data = make_skill_md("pdf", body="\n# Steps\n\n1. Read.\n", **fields)
    seeded = setup_agent_environment(sandbox, [SkillBundle("pdf", {"SKILL.md": data})])
    tool = create_skill_tool(seeded, sandbox)
    assert tool is not None
    return tool


def test_name_schema_is_an_enum() -> None:
    skills = [SkillMetadata("b", "B.", "b"), SkillMetadata("a", "A.", "a")]
    tool = create_skill_tool(skills)
    assert tool is not None
    assert tool.name == "Skill"
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "enum": ["b", "a"],
                "description": "The name of the skill to activate.",
            }
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_activation_returns_the_body_and_the_folder() -> None:
    assert tool_in_memory()("pdf") == {
        "name": "pdf",
        "instructions": "# Steps\n\n1. Read.",
        "message": "Skill 'pdf' is active. Follow its instructions; "
        "relative paths in them are relative to .skills/pdf.",
    }


def test_activation_includes_allowed_tools() -> None:
    result = tool_in_memory(allowed_tools="Read Bash(git *)")("pdf")
    assert result.get("allowed_tools") == ["Read", "Bash(git *)"]


def test_second_activation_does_not_repeat_the_instructions() -> None:
    tool = tool_in_memory()
    tool("pdf")
    assert tool("pdf") == {
        "name": "pdf",
        "instructions": "",
        "message": "Skill 'pdf' is already active; its instructions were given before.",
    }


def test_reset_starts_a_new_conversation() -> None:
    tool = tool_in_memory()
    first = tool("pdf")
    tool.reset()
    assert tool("pdf") == first


def test_unknown_name_error_lists_known_names() -> None:
    assert tool_in_memory()("PDF") == {
        "error": "There is no skill named 'PDF'. Available skills: pdf"
    }


def test_local_skills_need_no_sandbox(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    tool = create_skill_tool(discover_skills([tmp_path]))
    assert tool is not None
    assert tool("pdf").get("instructions") == "# Steps"


def test_missing_skill_is_an_error_and_can_be_retried(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "pdf")
    tool = create_skill_tool(discover_skills([tmp_path]))
    assert tool is not None
    (skill / "SKILL.md").unlink()
    assert "error" in tool("pdf")
    (skill / "SKILL.md").write_bytes(b"\xff")
    assert "error" in tool("pdf")
    (skill / "SKILL.md").write_bytes(make_skill_md("pdf"))
    assert tool("pdf").get("instructions") == "# Steps"


def test_no_tool_without_skills() -> None:
    assert create_skill_tool([]) is None


def test_hidden_skills_give_no_tool() -> None:
    hidden = SkillMetadata("secret", "For people.", "x", hidden=True)
    assert create_skill_tool([hidden]) is None
    tool = create_skill_tool([hidden, SkillMetadata("pdf", "Reads.", "y")])
    assert tool is not None
    assert tool("secret") == {"error": "There is no skill named 'secret'. Available skills: pdf"}
