"""Tools for the Anthropic SDK."""

from skillhall._internal.agents.adapters.anthropic import AnthropicSkillTool, skill_tools

__all__ = ["AnthropicSkillTool", "skill_tools"]
