"""JSON Schema tools for hand-written loops."""

from skillhall._internal.agents.adapters.json_schema import call_tool, tool_schemas
from skillhall._internal.agents.agent_tools import AgentTools

__all__ = ["AgentTools", "call_tool", "tool_schemas"]
