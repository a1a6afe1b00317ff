"""OpenAI Agents SDK adapter: adds instructions and tools to an agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents import FunctionTool

from skillhall._internal.agents.adapters.json_schema import call_tool
from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from agents import Agent, RunContextWrapper, Usage
    from agents.tool_context import ToolContext

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool


def with_skills(agent: Agent[Any], skills: SkillSource) -> Agent[Any]:
    """Return a copy of the agent with the current skills.

    Copying is cheap, so call this function for each message. If the agent's own instructions are a
    string, they come first; if they are a function, they are dropped.

    >>> from agents import Agent
    >>> agent = with_skills(Agent(name="Ada", instructions="Be brief."), Skills.load("skills"))
    >>> agent.name
    'Ada'
    """
    own = agent.instructions if isinstance(agent.instructions, str) else ""
    tools = AgentTools(skills)

    def instructions(_: RunContextWrapper[Any], __: Agent[Any]) -> str:
        return "\n\n".join(filter(None, (own, tools.system_prompt())))

    run = _RunTools(skills)
    function_tools = [_build_function_tool(tool, run) for tool in tools.tools()]
    return replace(agent, instructions=instructions, tools=[*agent.tools, *function_tools])


class _RunTools:
    """The tools of the current run, which remember the skills loaded in it.

    Interleaved runs of one agent reset each other; a skill may then be loaded again.
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills
        self._tools = AgentTools(skills)
        self._usage: Usage | None = None

    def get_tools(self, context: ToolContext[Any]) -> AgentTools:
        """Return the same tools for all calls of a run.

        A run is identified by its usage object.
        """
        if context.usage is not self._usage:
            self._usage, self._tools = context.usage, AgentTools(self._skills)
            items: list[Any] = context.turn_input
            self._tools.sync_history(
                str(item.get("output", ""))
                for item in items
                if isinstance(item, dict) and item.get("type") == "function_call_output"
            )
        return self._tools


def _build_function_tool(tool: Tool, run_tools: _RunTools) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return await asyncio.to_thread(
            call_tool, run_tools.get_tools(context), tool.name, arguments
        )

    return FunctionTool(
        tool.name, tool.description, tool.parameters, invoke, strict_json_schema=False
    )
