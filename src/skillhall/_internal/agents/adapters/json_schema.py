"""Skills for any loop that calls a model by hand: JSON Schemas out, texts for tool calls in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from skillhall._internal.agents.agent_tools import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.agent_tools import AgentTools


class FunctionSchema(TypedDict):
    """One function, as most providers want to be told of it."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolSchema(TypedDict):
    """The same as an entry of a `tools` list."""

    type: str
    function: FunctionSchema


def tool_schemas(tools: AgentTools) -> list[ToolSchema]:
    """The tools there are now, in the form of OpenAI's chat API, which many providers take."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools.tools()
    ]


def call_tool(tools: AgentTools, name: str, arguments: str | Mapping[str, object]) -> str:
    """The text for the model; arguments may be the JSON text that it sent, right or wrong."""
    return to_text(tools.call(name, _parse_arguments(arguments)).content)


def _parse_arguments(arguments: str | Mapping[str, object]) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
