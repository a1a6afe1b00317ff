"""Skills for the OpenAI Agents SDK: an agent, given its instructions and tools."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents import FunctionTool

from skillhall.agents.adapters.plain import call_tool
from skillhall.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents import Agent, RunContextWrapper
    from agents.tool_context import ToolContext

    from skillhall.agents.agent_skills import AgentSkills
    from skillhall.agents.calling import Tool


def with_skills(agent: Agent[Any], skills: AgentSkills) -> Agent[Any]:
    """The agent with skills as they are now: call it for each message, it costs next to nothing.

    What its instructions say comes first, if they are a text.
    """
    own = agent.instructions if isinstance(agent.instructions, str) else ""
    tools = AgentTools(skills)

    def instructions(_: RunContextWrapper[Any], __: Agent[Any]) -> str:
        return "\n\n".join(filter(None, (own, tools.system_prompt())))

    given = [_function_tool(tool, skills) for tool in tools.tools()]
    return replace(agent, instructions=instructions, tools=[*agent.tools, *given])


def _function_tool(tool: Tool, skills: AgentSkills) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        conversation = AgentTools(skills)
        conversation.recall(_tool_texts(context.turn_input))
        return await asyncio.to_thread(call_tool, conversation, tool.name, arguments)

    schema = json.loads(json.dumps(tool.parameters))
    return FunctionTool(tool.name, tool.description, schema, invoke, strict_json_schema=False)


def _tool_texts(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict) and item.get("type") == "function_call_output":
            yield str(item.get("output", ""))
