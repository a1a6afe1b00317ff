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
    """The schema of a function, in the format that most providers expect."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolSchema(TypedDict):
    """An entry in the `tools` of a request."""

    type: str
    function: FunctionSchema


def tool_schemas(tools: AgentTools | SkillSource) -> list[ToolSchema]:
    """Return the current tools in the format of OpenAI's chat API.

    Many other providers accept this format too.

    >>> [schema["function"]["name"] for schema in tool_schemas(Skills.load("skills"))][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """
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
    r"""Call a tool and return the text for the model.

    `arguments` may be a JSON string. If it is not valid JSON, the result is an error.

    >>> text = call_tool(Skills.load("skills"), "load_skill", '{"name": "pdf-tools"}')
    >>> text.partition("\n")[0]
    '<skill_content name="pdf-tools">'
    """
    values: object = arguments
    if isinstance(arguments, str):
        # If it is not JSON, the tool rejects the string, so that the model sees an error.
        with suppress(ValueError, RecursionError):
            values = json.loads(arguments or "{}")
    return to_agent_tools(tools).call(name, values).text
