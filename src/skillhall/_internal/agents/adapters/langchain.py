"""LangChain adapter: a middleware for `create_agent`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage, ToolMessage

from skillhall._internal.agents.adapters.json_schema import tool_schemas
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.scripts.skill_script_tool import SCRIPT_TOOL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langgraph.types import Command

    from skillhall._internal.agents.agent_skills import SkillSource


class SkillsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware that gives an agent skills.

    Use it as in `create_agent(model, middleware=[SkillsMiddleware(skills)])`. It is stateless: the
    messages of each thread show which skills are loaded.

    >>> SkillsMiddleware(Skills.load("skills")).name
    'SkillsMiddleware'
    """

    def __init__(self, skills: SkillSource) -> None:
        super().__init__()
        self._skills = skills.as_agent_skills()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the current skills and tools to the request."""
        return handler(self._add_skills(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Like `wrap_model_call`, for async agents."""
        return await handler(await asyncio.to_thread(self._add_skills, request))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Handle calls to skill tools; pass all others to `handler`."""
        return self._call_tool(request) if self._is_skill_tool(request) else handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Like `wrap_tool_call`, for async agents."""
        if self._is_skill_tool(request):
            return await asyncio.to_thread(self._call_tool, request)
        return await handler(request)

    def _add_skills(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        tools = AgentTools(self._skills)
        prompt = request.system_message.text if request.system_message else ""
        text = "\n\n".join(filter(None, (prompt, tools.system_prompt())))
        schemas = [{**schema} for schema in tool_schemas(tools)]
        return request.override(
            system_message=SystemMessage(text) if text else None, tools=[*request.tools, *schemas]
        )

    def _is_skill_tool(self, request: ToolCallRequest) -> bool:
        # Tools that LangChain knows have a `tool`; ours are only schemas in the request.
        names = (*self._skills.agent.tools, SCRIPT_TOOL)
        return request.tool is None and request.tool_call["name"] in names

    def _call_tool(self, request: ToolCallRequest) -> ToolMessage:
        tools = AgentTools(self._skills)
        messages = request.state["messages"]
        tools.sync_history(item.text for item in messages if isinstance(item, ToolMessage))
        call = request.tool_call
        result = tools.call(call["name"], call["args"])
        return ToolMessage(
            result.text,
            tool_call_id=call["id"],
            name=call["name"],
            status="error" if result.is_error else "success",
        )
