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


def test_the_name_is_an_enum_of_the_skills() -> None:
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


def test_an_activation_gives_the_trimmed_body_and_the_folder() -> None:
    assert tool_in_memory()("pdf") == {
        "name": "pdf",
        "instructions": "# Steps\n\n1. Read.",
        "message": "Skill 'pdf' is active. Follow its instructions; "
        "relative paths in them are relative to .skills/pdf.",
    }


def test_allowed_tools_are_told_if_there_are_any() -> None:
    result = tool_in_memory(allowed_tools="Read Bash(git *)")("pdf")
    assert result.get("allowed_tools") == ["Read", "Bash(git *)"]


def test_a_second_activation_says_so_instead_of_repeating() -> None:
    tool = tool_in_memory()
    tool("pdf")
    assert tool("pdf") == {
        "name": "pdf",
        "instructions": "",
        "message": "Skill 'pdf' is already active; its instructions were given before.",
    }


def test_a_reset_starts_a_new_conversation() -> None:
    tool = tool_in_memory()
    first = tool("pdf")
    tool.reset()
    assert tool("pdf") == first


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    assert tool_in_memory()("PDF") == {
        "error": "There is no skill named 'PDF'. Available skills: pdf"
    }


def test_local_skills_need_no_sandbox(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    tool = create_skill_tool(discover_skills([tmp_path]))
    assert tool is not None
    assert tool("pdf").get("instructions") == "# Steps"


def test_a_skill_that_is_gone_is_an_error_and_can_be_tried_again(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "pdf")
    tool = create_skill_tool(discover_skills([tmp_path]))
    assert tool is not None
    (skill / "SKILL.md").unlink()
    assert "error" in tool("pdf")
    (skill / "SKILL.md").write_bytes(b"\xff")
    assert "error" in tool("pdf")
    (skill / "SKILL.md").write_bytes(make_skill_md("pdf"))
    assert tool("pdf").get("instructions") == "# Steps"


def test_without_skills_there_is_no_tool() -> None:
    assert create_skill_tool([]) is None


def test_hidden_skills_are_no_skills_for_a_model() -> None:
    hidden = SkillMetadata("secret", "For people.", "x", hidden=True)
    assert create_skill_tool([hidden]) is None
    tool = create_skill_tool([hidden, SkillMetadata("pdf", "Reads.", "y")])
    assert tool is not None
    assert tool("secret") == {"error": "There is no skill named 'secret'. Available skills: pdf"}
