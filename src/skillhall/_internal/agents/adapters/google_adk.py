"""Google ADK adapter: a toolset that includes its instructions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai.types import FunctionDeclaration

from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool


class SkillsToolset(BaseToolset):
    """Toolset that gives an agent skills: `LlmAgent(tools=[SkillsToolset(skills)])`.

    It is stateless: the events of each session show which skills are loaded.

    >>> from google.adk.agents import LlmAgent
    >>> agent = LlmAgent(name="ada", tools=[SkillsToolset(Skills.load("skills"))])
    """

    def __init__(self, skills: SkillSource) -> None:
        super().__init__()
        self._skills = skills

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the current tools."""
        del readonly_context
        tools = await asyncio.to_thread(AgentTools(self._skills).tools)
        return [_AdkTool(tool, self._skills) for tool in tools]

    async def process_llm_request(
        self, *, tool_context: ToolContext, llm_request: LlmRequest
    ) -> None:
        """Add the skills to the model's instructions."""
        del tool_context
        text = await asyncio.to_thread(AgentTools(self._skills).system_prompt)
        if text:
            llm_request.append_instructions([text])


class _AdkTool(BaseTool):
    def __init__(self, tool: Tool, skills: SkillSource) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._parameters = tool.parameters
        self._skills = skills

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, str]:
        """Call the tool; errors are returned under "error"."""
        tools = AgentTools(self._skills)
        responses = (
            response.response or {}
            for event in tool_context.session.events
            for response in event.get_function_responses()
        )
        tools.sync_history(str(response.get("result", "")) for response in responses)
        result = await asyncio.to_thread(tools.call, self.name, args)
        return {"error" if result.is_error else "result": result.text}
