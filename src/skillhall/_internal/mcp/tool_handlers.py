"""The tools of `agents.skill_tools`, for clients that have nothing else to call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.mcp.errors import invalid
from skillhall._internal.mcp.serializers import LIST_TTL, complete, fresh

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.tool_protocol import Answer, Tool
    from skillhall._internal.mcp.serializers import Wire
    from skillhall._internal.mcp.skill_index import Stock

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


def list_tools(stock: Stock) -> Wire:
    """The tools; none if there are no skills."""
    tools = SkillTools(stock).tools()
    return fresh({"tools": [_told(tool) for tool in tools]}, LIST_TTL)


def call_tool(stock: Stock, name: str, arguments: Mapping[str, object] | None) -> Wire:
    """What a tool answers. A call has no conversation, so every load gives the text.

    Raises: MCPError if there is no such tool.
    """
    for tool in SkillTools(stock).tools():
        if tool.name == name:
            return complete(_answered(tool.answer(arguments)))
    raise invalid(f"there is no tool {name[:80]!r}")


def _told(tool: Tool) -> Wire:
    return {
        "name": tool.name,
        "title": _TITLES[tool.name],
        "description": tool.description,
        "inputSchema": {**tool.parameters},
        "annotations": {"title": _TITLES[tool.name], **_HINTS},
    }


def _answered(answer: Answer) -> Wire:
    if answer.is_error:
        message = str(answer.content)
        told: Mapping[str, object] = {"error": {"code": answer.code, "message": message}}
        return {
            "content": [_text(f"{message} [{answer.code}]")],
            "structuredContent": told,
            "isError": True,
        }
    if isinstance(answer.content, str):
        return {"content": [_text(answer.content)]}
    text = json.dumps(answer.content, ensure_ascii=False)
    return {"content": [_text(text)], "structuredContent": {**answer.content}}


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}
