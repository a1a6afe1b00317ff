"""Tools for the Anthropic SDK."""

from skillhall._internal.agents.adapters.anthropic import AnthropicSkillTool, skill_tools
from skillhall._public_path import show_public_path
from skillhall.adapters.json_schema import AgentTools

__all__ = ["AgentTools", "AnthropicSkillTool", "skill_tools"]

show_public_path(__name__)
