"""The tools of `agents.skill_tools`, for clients that have nothing else to call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.mcp.serializers import LIST_TTL_MS, mark_complete, with_ttl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.tool_protocol import Tool, ToolResult
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import SkillIndex

_TITLES = {
    "list_skills": "List skills",
    "search_skills": "Search skills",
    "load_skill": "Load a skill",
    "read_skill_file": "Read a file of a skill",
}
# Nothing is changed, asked twice it is the same, and no other system is reached.
_HINTS = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}


def list_tools(index: SkillIndex) -> JsonObject:
    """The tools; none if there are no skills."""
    tools = SkillTools(index).tools()
    return with_ttl({"tools": [_serialize_tool(tool) for tool in tools]}, LIST_TTL_MS)


def call_tool(index: SkillIndex, name: str, arguments: Mapping[str, object] | None) -> JsonObject:
    """What a tool answers. A call has no conversation, so every load gives the text.

    Raises: MCPError if there is no such tool.
    """
    for tool in SkillTools(index).tools():
        if tool.name == name:
            return mark_complete(_serialize_result(tool.call(arguments)))
    raise build_invalid_params(f"there is no tool {name[:80]!r}")


def _serialize_tool(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "title": _TITLES[tool.name],
        "description": tool.description,
        "inputSchema": {**tool.parameters},
        "annotations": {"title": _TITLES[tool.name], **_HINTS},
    }


def _serialize_result(result: ToolResult) -> JsonObject:
    if result.is_error:
        message = str(result.content)
        told: Mapping[str, object] = {"error": {"code": result.code, "message": message}}
        return {
            "content": [_build_text_content(f"{message} [{result.code}]")],
            "structuredContent": told,
            "isError": True,
        }
    if isinstance(result.content, str):
        return {"content": [_build_text_content(result.content)]}
    text = json.dumps(result.content, ensure_ascii=False)
    return {"content": [_build_text_content(text)], "structuredContent": {**result.content}}


def _build_text_content(text: str) -> JsonObject:
    return {"type": "text", "text": text}
