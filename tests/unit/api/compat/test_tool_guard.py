from skillhall._internal.api.compat.sandbox import MemorySandbox, setup_agent_environment
from skillhall._internal.api.compat.skills_module import SkillBundle
from skillhall._internal.api.compat.tool_guard import ToolGuard
from tests.support.skills import make_skill_md


def guard() -> ToolGuard:
    files = {
        "git-helper": make_skill_md("git-helper", allowed_tools="Read Bash(git:*)"),
        "reader": make_skill_md("reader", allowed_tools="Read, Grep"),
        "free": make_skill_md("free"),
    }
    bundles = [SkillBundle(name, {"SKILL.md": data}) for name, data in files.items()]
    return ToolGuard(setup_agent_environment(MemorySandbox(), bundles), always=["Skill"])


def test_guard_reports_allowed_tools() -> None:
    assert guard().allowed == {"git-helper": ("Read", "Bash(git:*)"), "reader": ("Read", "Grep")}


def test_guard_allows_everything_before_activation() -> None:
    assert guard().refusal("Bash", "rm -rf x") is None


def test_active_skill_is_restricted_to_its_tools() -> None:
    active = guard()
    active.activate("git-helper")
    assert active.refusal("Bash", "git status") is None
    assert active.refusal("Skill") is None
    assert active.refusal("Bash", "rm x") == (
        "Error: 'Bash' is not among the tools that the active skills allow: Read, Bash(git:*)"
    )


def test_one_allowing_skill_is_enough() -> None:
    active = guard()
    active.activate("git-helper")
    active.activate("reader")
    assert active.refusal("Grep") is None
    assert active.refusal("Write") is not None


def test_unknown_skill_allows_no_tool() -> None:
    active = guard()
    active.activate("git-help")
    assert active.refusal("Read") == (
        "Error: 'Read' is not allowed: the rules of the skill 'git-help' are not known"
    )
    assert active.refusal("Skill") is None
    active.activate("free")
    assert active.refusal("Write") is not None


def test_skill_without_allowed_tools_is_unrestricted() -> None:
    active = guard()
    active.activate("git-helper")
    active.activate("free")
    assert active.refusal("Write") is None
