"""Skillhall: Agent Skills for agent builders, teams and curators.

The public names of the library. Each is imported when it is first used, so that `import skillhall`
costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from skillhall._version import VERSION as __version__  # noqa: N811 - the name tools look for

# As `typing.TYPE_CHECKING`, which would be the only reason to import `typing` here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.agent_tools import AgentTools
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
    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.catalog.reader import activate, read_skill, read_skill_file
    from skillhall._internal.policy.effects import Effect
    from skillhall._internal.policy.effects import JudgedFinding as Judged
    from skillhall._internal.policy.profiles import PROFILES, Profile
    from skillhall._internal.policy.selection import Globs
    from skillhall._internal.render.inline import render_inline
    from skillhall._internal.render.listing import render_listing
    from skillhall._internal.render.local_listing import render_local
    from skillhall._internal.render.markdown import render_markdown
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.document import Document
    from skillhall._internal.skill.finding import Code, Finding
    from skillhall._internal.skill.parsed import Frontmatter, ParsedSkill
    from skillhall._internal.skill.parser import parse_skill
    from skillhall._internal.skill.token_count import estimate_tokens
    from skillhall._internal.skill_store.folder_store import FolderStore as LocalSkills
    from skillhall._internal.sources.mcp.source import (
        McpSkill as ServedSkill,
    )
    from skillhall._internal.sources.mcp.source import (
        McpSkillSource as ServedSkills,
    )
    from skillhall._internal.sources.mcp.source import (
        open_mcp_source as open_served,
    )
    from skillhall._internal.wiring.catalog import load_catalog
    from skillhall.errors import (
        EditRefused,
        SkillhallError,
        SkillNotFound,
        SkillParseError,
        SkillRejected,
    )

_NAMES_BY_MODULE = {
    "_internal.agents.agent_skills": ("AgentSkills",),
    "_internal.agents.agent_tools": ("AgentTools",),
    "_internal.agents.file_tools": ("ReadTools",),
    "_internal.api.compat.remote_skills": ("fetch_skill", "fetch_skills"),
    "_internal.agents.instruction_skills": ("InstructionSkills", "InstructionSource"),
    "_internal.api.compat.sandbox": (
        "FolderSandbox",
        "MemorySandbox",
        "Sandbox",
        "setup_agent_environment",
    ),
    "_internal.api.compat.skills_module": (
        "SkillBundle",
        "SkillList",
        "SkillMetadata",
        "discover_skills",
        "load_skill_bundle",
        "load_skill_bundles",
        "parse_skill_metadata",
        "skills_to_xml",
    ),
    "_internal.api.compat.skill_tool": ("SkillTool", "create_skill_tool"),
    "_internal.api.compat.tool_guard": ("ToolGuard",),
    "_internal.api.compat.toolbox": ("tools_for",),
    "_internal.catalog.catalog": ("Catalog", "Skill"),
    "_internal.catalog.reader": ("activate", "read_skill", "read_skill_file"),
    "errors": (
        "EditRefused",
        "SkillNotFound",
        "SkillParseError",
        "SkillRejected",
        "SkillhallError",
    ),
    "_internal.skill_store.folder_store": ("LocalSkills",),
    "_internal.sources.mcp.source": ("ServedSkill", "ServedSkills", "open_served"),
    "_internal.policy.effects": ("Effect", "Judged"),
    "_internal.policy.profiles": ("PROFILES", "Profile"),
    "_internal.policy.selection": ("Globs",),
    "_internal.render.inline": ("render_inline",),
    "_internal.render.listing": ("render_listing",),
    "_internal.render.local_listing": ("render_local",),
    "_internal.render.markdown": ("render_markdown",),
    "_internal.settings": ("Settings",),
    "_internal.skill.document": ("Document",),
    "_internal.skill.finding": ("Code", "Finding"),
    "_internal.skill.parsed": ("Frontmatter", "ParsedSkill"),
    "_internal.skill.parser": ("parse_skill",),
    "_internal.skill.token_count": ("estimate_tokens",),
    "_internal.wiring.catalog": ("load_catalog",),
}
# Public names whose implementation has another name.
_IMPLEMENTED_AS = {
    "Judged": "JudgedFinding",
    "LocalSkills": "FolderStore",
    "ServedSkill": "McpSkill",
    "ServedSkills": "McpSkillSource",
    "open_served": "open_mcp_source",
}
_MODULE_BY_NAME = {name: home for home, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "PROFILES",
    "AgentSkills",
    "AgentTools",
    "Catalog",
    "Code",
    "Document",
    "EditRefused",
    "Effect",
    "Finding",
    "FolderSandbox",
    "Frontmatter",
    "Globs",
    "InstructionSkills",
    "InstructionSource",
    "Judged",
    "LocalSkills",
    "MemorySandbox",
    "ParsedSkill",
    "Profile",
    "ReadTools",
    "Sandbox",
    "ServedSkill",
    "ServedSkills",
    "Settings",
    "Skill",
    "SkillBundle",
    "SkillList",
    "SkillMetadata",
    "SkillNotFound",
    "SkillParseError",
    "SkillRejected",
    "SkillTool",
    "SkillhallError",
    "ToolGuard",
    "__version__",
    "activate",
    "create_skill_tool",
    "discover_skills",
    "estimate_tokens",
    "fetch_skill",
    "fetch_skills",
    "load_catalog",
    "load_skill_bundle",
    "load_skill_bundles",
    "open_served",
    "parse_skill",
    "parse_skill_metadata",
    "read_skill",
    "read_skill_file",
    "render_inline",
    "render_listing",
    "render_local",
    "render_markdown",
    "setup_agent_environment",
    "skills_to_xml",
    "tools_for",
]


def __getattr__(name: str) -> object:
    home = _MODULE_BY_NAME.get(name)
    if home is None:
        raise AttributeError(f"module 'skillhall' has no attribute {name!r}")
    value: object = getattr(import_module(f"skillhall.{home}"), _IMPLEMENTED_AS.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
