"""The skill tools, for clients that support only tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.mcp.serializers import LIST_TTL_MS, with_ttl

if TYPE_CHECKING:
    from mcp_types import CallToolRequestParams, PaginatedRequestParams

    from skillhall._internal.agents.tool import ToolResult
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import SkillIndex

_TITLES = {
    "list_skills": "List skills",
    "search_skills": "Search skills",
    "load_skill": "Load a skill",
    "read_skill_file": "Read a file of a skill",
}
# The tools change nothing, are idempotent and reach no other system.
_HINTS = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}


def list_tools(index: SkillIndex, _: PaginatedRequestParams) -> JsonObject:
    """Return the tools; none if there are no skills."""
    tools = [
        {
            "name": tool.name,
            "title": _TITLES[tool.name],
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": {"title": _TITLES[tool.name], **_HINTS},
        }
        for tool in SkillTools(index).tools()
    ]
    return with_ttl({"tools": tools}, LIST_TTL_MS)


def call_tool(index: SkillIndex, params: CallToolRequestParams) -> JsonObject:
    """Return the result of a tool call. Every `load_skill` returns the text: there is no history.

    Raises: MCPError for an unknown tool.
    """
    for tool in SkillTools(index).tools():
        if tool.name == params.name:
            return _serialize_result(tool.call(params.arguments))
    raise build_invalid_params(f"unknown tool: {params.name[:80]!r}")


def _serialize_result(result: ToolResult) -> JsonObject:
    text, structured = result.text, {}
    if result.is_error:
        error = {"code": result.code, "message": text}
        text = f"{text} [{result.code}]"
        structured = {"structuredContent": {"error": error}, "isError": True}
    elif not isinstance(result.content, str):
        structured = {"structuredContent": {**result.content}}
    return {"content": [{"type": "text", "text": text}], **structured}
