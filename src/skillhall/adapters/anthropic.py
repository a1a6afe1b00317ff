"""Tools for the Anthropic SDK."""

from skillhall._internal.agents.adapters.anthropic import AnthropicSkillTool, skill_tools
from skillhall._internal.agents.agent_tools import AgentTools

__all__ = ["AgentTools", "AnthropicSkillTool", "skill_tools"]
