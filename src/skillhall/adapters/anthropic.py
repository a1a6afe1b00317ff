"""Tools for the Anthropic SDK."""

from skillhall._internal.agents.adapters.anthropic import SkillTool, skill_tools

__all__ = ["SkillTool", "skill_tools"]
