"""Pydantic AI adapter: a toolset that includes its instructions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import InstructionPart, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelMessage

    from skillhall._internal.agents.agent_skills import SkillSource

MAX_RETRIES = 3  # small models sometimes send arguments that are not JSON
_ANY_VALIDATOR = SchemaValidator(core_schema.any_schema())  # the tools validate their arguments


class SkillsToolset(AbstractToolset[Any]):
    """Toolset that gives an agent skills: `Agent(model, toolsets=[SkillsToolset(…)])`.

    The message history of each run shows which skills are loaded.

    >>> from pydantic_ai import Agent
    >>> agent = Agent("openai-chat:gpt-5", toolsets=[SkillsToolset(Skills.load("skills"))])
    """

    def __init__(
        self, skills: SkillSource, shared_tools: AgentTools | None = None, name: str = "skillhall"
    ) -> None:
        self._name = name
        self._skills = skills
        self._shared_tools = shared_tools  # shared by all runs, if set
        self.tools: AgentTools = shared_tools or AgentTools(skills)

    @property
    def id(self) -> str:
        """The id by which Pydantic AI tells the toolsets of an agent apart."""
        return self._name

    async def for_run(self, ctx: RunContext[Any]) -> SkillsToolset:
        """Return a copy for one run, which knows the skills loaded in its messages."""
        own = SkillsToolset(self._skills, self._shared_tools, self._name)
        prompts = [ctx.prompt] if isinstance(ctx.prompt, str) else []
        texts = [*iter_texts(ctx.messages), *prompts]
        own.tools.sync_history(texts)
        own.tools.task = own.tools.task or next(iter(texts), "")
        return own

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart | None:
        """Return the system prompt; `None` if it is empty."""
        del ctx
        text = await asyncio.to_thread(self.tools.system_prompt)
        return InstructionPart(text, dynamic=True) if text else None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the current tools."""
        del ctx
        tools = await asyncio.to_thread(self.tools.tools)
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.parameters,
                    strict=False,
                ),
                max_retries=MAX_RETRIES,
                args_validator=_ANY_VALIDATOR,
            )
            for tool in tools
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """Call the tool. An error is returned as text, so that the model reads it."""
        del ctx, tool
        result = await asyncio.to_thread(self.tools.call, name, tool_args)
        return result.text


def iter_texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the texts of user messages and tool results in a conversation."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, ToolReturnPart | UserPromptPart):
                    yield part.content if isinstance(part.content, str) else ""
