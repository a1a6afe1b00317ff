"""The functions and types of the founding designs, under their original names."""

from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.agents.instruction_skills import InstructionSkills, InstructionSource
from skillhall._internal.api.compat.remote_skills import fetch_skill, fetch_skills
from skillhall._internal.api.compat.sandbox import (
    FolderSandbox,
    MemorySandbox,
    Sandbox,
    setup_agent_environment,
)
from skillhall._internal.api.compat.skill_tool import SkillTool, create_skill_tool
from skillhall._internal.api.compat.skills_module import (
    SkillBundle,
    SkillList,
    SkillMetadata,
    discover_skills,
    load_skill_bundle,
    load_skill_bundles,
    parse_skill_metadata,
    skills_to_xml,
)
from skillhall._internal.api.compat.tool_guard import ToolGuard
from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.policy.selection import Globs
from skillhall._internal.render.listing import render_local
from skillhall._internal.skill_store.folder_store import FolderStore as LocalSkills

__all__ = [
    "FolderSandbox",
    "Globs",
    "InstructionSkills",
    "InstructionSource",
    "LocalSkills",
    "MemorySandbox",
    "ReadTools",
    "Sandbox",
    "SkillBundle",
    "SkillList",
    "SkillMetadata",
    "SkillTool",
    "ToolGuard",
    "create_skill_tool",
    "discover_skills",
    "fetch_skill",
    "fetch_skills",
    "load_skill_bundle",
    "load_skill_bundles",
    "parse_skill_metadata",
    "render_local",
    "setup_agent_environment",
    "skills_to_xml",
    "tools_for",
]
