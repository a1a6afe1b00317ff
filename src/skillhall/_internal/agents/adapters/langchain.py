"""Skills for LangChain: one middleware for `create_agent`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage, ToolMessage

from skillhall._internal.agents.adapters.json_schema import tool_schemas
from skillhall._internal.agents.agent_tools import AgentTools, to_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langgraph.types import Command

    from skillhall._internal.agents.agent_skills import AgentSkills


class SkillsMiddleware(AgentMiddleware[Any, Any, Any]):
    """The skills of an agent: `create_agent(model, middleware=[SkillsMiddleware(skills)])`.

    It keeps nothing: what the model has been given stands in the messages of each thread.
    """

    def __init__(self, skills: AgentSkills) -> None:
        super().__init__()
        self._skills = skills

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """The model is told of the skills and the tools there are now."""
        return handler(self._add_skills(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The same."""
        return await handler(await asyncio.to_thread(self._add_skills, request))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Our tools answer; the others go on to where they were."""
        return self._call_tool(request) if self._is_skill_tool(request) else handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """The same."""
        if self._is_skill_tool(request):
            return await asyncio.to_thread(self._call_tool, request)
        return await handler(request)

    def _add_skills(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        tools = AgentTools(self._skills)
        own = request.system_message.text if request.system_message else ""
        text = "\n\n".join(filter(None, (own, tools.system_prompt())))
        given = [{**schema} for schema in tool_schemas(tools)]
        message = SystemMessage(text) if text else None
        return request.override(system_message=message, tools=[*request.tools, *given])

    def _is_skill_tool(self, request: ToolCallRequest) -> bool:
        return request.tool is None and request.tool_call["name"] in self._skills.agent.tools

    def _call_tool(self, request: ToolCallRequest) -> ToolMessage:
        tools = AgentTools(self._skills)
        messages = request.state["messages"]
        tools.sync_history(one.text for one in messages if isinstance(one, ToolMessage))
        call = request.tool_call
        answer = tools.call(call["name"], call["args"])
        status = "error" if answer.is_error else "success"
        text = to_text(answer.content)
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)
