"""JSON Schema tools for hand-written loops."""

from skillhall._internal.agents.adapters.json_schema import call_tool, tool_schemas

__all__ = ["call_tool", "tool_schemas"]
