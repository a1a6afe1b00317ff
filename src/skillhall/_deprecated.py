"""Deprecated names of the package, which emit a warning, and their replacements."""

from __future__ import annotations

import warnings

# Old name: where it is implemented, and what to use instead.
DEPRECATED = {
    "AgentTools": ("adapters.json_schema:AgentTools", "skillhall.adapters.json_schema.AgentTools"),
    "Catalog": ("_internal.catalog.catalog:Catalog", "Skills"),
    "Code": ("types:Code", "skillhall.types.Code"),
    "EditRefused": ("errors:EditRefused", "skillhall.errors.EditRefused"),
    "Effect": ("types:Effect", "skillhall.types.Effect"),
    "FolderSandbox": ("compat:FolderSandbox", "skillhall.compat.FolderSandbox"),
    "Frontmatter": ("types:Frontmatter", "skillhall.types.Frontmatter"),
    "Globs": ("compat:Globs", "skillhall.compat.Globs"),
    "InstructionSkills": ("compat:InstructionSkills", "skillhall.compat.InstructionSkills"),
    "InstructionSource": ("compat:InstructionSource", "skillhall.compat.InstructionSource"),
    "Judged": ("types:JudgedFinding", "skillhall.types.JudgedFinding"),
    "LocalSkills": ("compat:LocalSkills", "skillhall.compat.LocalSkills"),
    "MemorySandbox": ("compat:MemorySandbox", "skillhall.compat.MemorySandbox"),
    "PROFILES": ("_internal.policy.profiles:PROFILES", "the name of a profile"),
    "ParsedSkill": ("types:ParsedSkill", "skillhall.types.ParsedSkill"),
    "ReadTools": ("compat:ReadTools", "skillhall.compat.ReadTools"),
    "Sandbox": ("compat:Sandbox", "skillhall.compat.Sandbox"),
    "ServedSkill": ("mcp_source:McpSkill", "skillhall.mcp_source.McpSkill"),
    "ServedSkills": ("mcp_source:McpSkillSource", "skillhall.mcp_source.McpSkillSource"),
    "Settings": ("_internal.settings:Settings", "environment variables"),
    "SkillBundle": ("compat:SkillBundle", "skillhall.compat.SkillBundle"),
    "SkillList": ("compat:SkillList", "skillhall.compat.SkillList"),
    "SkillMetadata": ("compat:SkillMetadata", "skillhall.compat.SkillMetadata"),
    "SkillParseError": ("errors:SkillParseError", "skillhall.errors.SkillParseError"),
    "SkillRejected": ("errors:SkillRejected", "skillhall.errors.SkillRejected"),
    "SkillTool": ("compat:SkillTool", "skillhall.compat.SkillTool"),
    "ToolGuard": ("compat:ToolGuard", "skillhall.compat.ToolGuard"),
    "activate": ("_internal.catalog.skill_content:activate", "Skills.activate()"),
    "load_catalog": ("_internal.wiring.catalog:load_catalog", "Skills.load()"),
    "open_served": ("mcp_source:open_mcp_source", "Skills.open('mcp:LABEL')"),
    "read_skill": ("_internal.catalog.skill_content:read_skill", "Skill.body"),
    "read_skill_file": ("_internal.catalog.skill_content:read_skill_file", "Skill.read_bytes()"),
    "render_inline": ("_internal.render.listing:render_inline", "Skill.activate()"),
    "render_listing": ("_internal.render.listing:render_listing", "Skills.listing()"),
    "render_local": ("compat:render_local", "skillhall.compat.render_local"),
    "render_markdown": (
        "_internal.render.listing:render_markdown",
        "Skills.listing(format='markdown')",
    ),
    "tools_for": ("compat:tools_for", "skillhall.compat.tools_for"),
}
# The version that removes these names: at least one minor version after the first warning.
REMOVED_IN = "0.3"


def warn_deprecated(name: str, replacement: str, removed_in: str, *, stacklevel: int = 1) -> None:
    """Warn that a name will be removed, and say what to use instead.

    With `stacklevel=1`, the warning names the line that called the function that calls this one.
    """
    message = f"{name} is deprecated and will be removed in {removed_in}; use {replacement}"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 2)
