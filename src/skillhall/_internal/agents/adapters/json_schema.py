"""JSON Schema adapter, for hand-written agent loops."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

from skillhall._internal.agents.agent_tools import to_agent_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.agent_tools import AgentTools


class FunctionSchema(TypedDict):
    """A function in the schema that most providers use."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolSchema(TypedDict):
    """An entry of a `tools` list."""

    type: str
    function: FunctionSchema


def tool_schemas(tools: AgentTools | SkillSource) -> list[ToolSchema]:
    """Return the current tools in the schema of OpenAI's chat API, which many providers accept."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in to_agent_tools(tools).tools()
    ]


def call_tool(
    tools: AgentTools | SkillSource, name: str, arguments: str | Mapping[str, object]
) -> str:
    """Call a tool and return the text for the model. `arguments` may be (invalid) JSON text."""
    values: object = arguments
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # the tool reports invalid JSON to the model
            values = json.loads(arguments or "{}")
    return to_agent_tools(tools).call(name, values).text
