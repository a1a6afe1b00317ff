"""LlamaIndex adapter: a tool spec with instructions and tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput

from skillhall._internal.agents.adapters.arguments_model import build_arguments_model
from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llama_index.core.agent.workflow import ToolCallResult
    from llama_index.core.memory import BaseMemory
    from llama_index.core.workflow import Context

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool

_CONTEXT = "ctx"  # the argument in which an agent passes the context of its run


class SkillsToolSpec:
    """Tool spec that gives an agent skills.

    Use it as in `FunctionAgent(tools=spec.to_tool_list(), system_prompt=spec.system_prompt())`. It
    is stateless: the context of each run shows which skills are loaded.

    >>> spec = SkillsToolSpec(Skills.load("skills"))
    >>> [tool.metadata.name for tool in spec.to_tool_list()][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills.as_agent_skills()

    def system_prompt(self) -> str:
        """Return the current system prompt."""
        return AgentTools(self._skills).system_prompt()

    def to_tool_list(self) -> list[FunctionTool]:
        """Return the tools."""
        return [_SkillTool(tool, self._skills) for tool in AgentTools(self._skills).tools()]


class _SkillTool(FunctionTool):
    def __init__(self, tool: Tool, skills: SkillSource) -> None:
        def call(**arguments: object) -> ToolOutput:
            return self._run((), arguments)

        super().__init__(
            call, ToolMetadata(tool.description, tool.name, build_arguments_model(tool))
        )
        # Agents pass the context to function tools that require it.
        self.requires_context, self.ctx_param_name = True, _CONTEXT
        self._skills = skills

    def call(self, *_: Any, **kwargs: Any) -> ToolOutput:  # noqa: ANN401 - as in the base class
        """Call the tool; no conversation is known."""
        kwargs.pop(_CONTEXT, None)
        return self._run((), kwargs)

    async def acall(self, *_: Any, **kwargs: Any) -> ToolOutput:  # noqa: ANN401 - as above
        """Call the tool; an error is an output with `is_error`."""
        context = kwargs.pop(_CONTEXT, None)
        history = [] if context is None else await _read_history(context)
        return await asyncio.to_thread(self._run, history, kwargs)

    def _run(self, history: Iterable[str], arguments: dict[str, object]) -> ToolOutput:
        tools = AgentTools(self._skills)
        tools.sync_history(history)
        name = self.metadata.get_name()
        result = tools.call(name, arguments)
        return ToolOutput(
            tool_name=name,
            content=result.text,
            raw_input=arguments,
            raw_output=result.content,
            is_error=result.is_error,
        )


async def _read_history(context: Context[Any]) -> list[str]:
    """Return the texts of the memory and the results of tools in the current run."""
    memory: BaseMemory = await context.store.get("memory")
    calls: list[ToolCallResult] = await context.store.get("current_tool_calls", default=[])
    texts = [message.content or "" for message in await memory.aget()]
    return [*texts, *(call.tool_output.content for call in calls)]
