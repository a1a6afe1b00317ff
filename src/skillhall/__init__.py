"""Skillhall: Agent Skills for agent builders, teams and curators.

The public names of the library. Each is imported when it is first used, so that `import skillhall`
costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from skillhall.version import VERSION as __version__  # noqa: N811 - the name tools look for

# As `typing.TYPE_CHECKING`, which would be the only reason to import `typing` here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillhall.agents.activation import activate
    from skillhall.agents.agent_skills import AgentSkills
    from skillhall.agents.agent_tools import AgentTools
    from skillhall.agents.fetching import fetch_skill, fetch_skills
    from skillhall.agents.file_tools import ReadTools
    from skillhall.agents.instructions import InstructionSkills, InstructionSource
    from skillhall.agents.sandbox import (
        FolderSandbox,
        MemorySandbox,
        Sandbox,
        setup_agent_environment,
    )
    from skillhall.agents.skills_module import (
        SkillBundle,
        SkillList,
        SkillMetadata,
        discover_skills,
        load_skill_bundle,
        load_skill_bundles,
        parse_skill_metadata,
        skills_to_xml,
    )
    from skillhall.agents.tool import SkillTool, create_skill_tool
    from skillhall.agents.tool_guard import ToolGuard
    from skillhall.agents.toolbox import tools_for
    from skillhall.catalog.catalog import Catalog, Skill
    from skillhall.catalog.read import read_skill, read_skill_file
    from skillhall.errors import (
        EditRefused,
        SkillhallError,
        SkillNotFound,
        SkillParseError,
        SkillRejected,
    )
    from skillhall.library.local_skills import LocalSkills
    from skillhall.library.served_skills import ServedSkill, ServedSkills, open_served
    from skillhall.policy.loading import Effect, Judged
    from skillhall.policy.profiles import PROFILES, Profile
    from skillhall.policy.selecting import Globs
    from skillhall.render.inline import render_inline
    from skillhall.render.listing import render_listing
    from skillhall.render.local import render_local
    from skillhall.render.markdown import render_markdown
    from skillhall.settings import Settings
    from skillhall.skill.document import Document
    from skillhall.skill.finding import Code, Finding
    from skillhall.skill.model import Frontmatter, ParsedSkill
    from skillhall.skill.parse import parse_skill
    from skillhall.skill.tokens import estimate_tokens
    from skillhall.wiring import load_catalog

_HOMES = {
    "agents.activation": ("activate",),
    "agents.agent_skills": ("AgentSkills",),
    "agents.agent_tools": ("AgentTools",),
    "agents.file_tools": ("ReadTools",),
    "agents.fetching": ("fetch_skill", "fetch_skills"),
    "agents.instructions": ("InstructionSkills", "InstructionSource"),
    "agents.sandbox": ("FolderSandbox", "MemorySandbox", "Sandbox", "setup_agent_environment"),
    "agents.skills_module": (
        "SkillBundle",
        "SkillList",
        "SkillMetadata",
        "discover_skills",
        "load_skill_bundle",
        "load_skill_bundles",
        "parse_skill_metadata",
        "skills_to_xml",
    ),
    "agents.tool": ("SkillTool", "create_skill_tool"),
    "agents.tool_guard": ("ToolGuard",),
    "agents.toolbox": ("tools_for",),
    "catalog.catalog": ("Catalog", "Skill"),
    "catalog.read": ("read_skill", "read_skill_file"),
    "errors": (
        "EditRefused",
        "SkillNotFound",
        "SkillParseError",
        "SkillRejected",
        "SkillhallError",
    ),
    "library.local_skills": ("LocalSkills",),
    "library.served_skills": ("ServedSkill", "ServedSkills", "open_served"),
    "policy.loading": ("Effect", "Judged"),
    "policy.profiles": ("PROFILES", "Profile"),
    "policy.selecting": ("Globs",),
    "render.inline": ("render_inline",),
    "render.listing": ("render_listing",),
    "render.local": ("render_local",),
    "render.markdown": ("render_markdown",),
    "settings": ("Settings",),
    "skill.document": ("Document",),
    "skill.finding": ("Code", "Finding"),
    "skill.model": ("Frontmatter", "ParsedSkill"),
    "skill.parse": ("parse_skill",),
    "skill.tokens": ("estimate_tokens",),
    "wiring": ("load_catalog",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'skillhall' has no attribute {name!r}")
    value: object = getattr(import_module(f"skillhall.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
