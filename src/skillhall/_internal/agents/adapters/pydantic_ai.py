"""Skills for Pydantic AI: one toolset that brings its own instructions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import InstructionPart, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from skillhall._internal.agents.agent_tools import AgentTools, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelMessage

    from skillhall._internal.agents.agent_skills import AgentSkills

MAX_RETRIES = 3  # of a call whose arguments are not JSON, which small models need now and then
_ANY_VALIDATOR = SchemaValidator(core_schema.any_schema())  # the tools check what they are given


class SkillsToolset(AbstractToolset[Any]):
    """The skills of an agent: `Agent(model, toolsets=[SkillsToolset(skills)])`.

    Each run knows from its message history which skills the model has been given.
    """

    def __init__(
        self, skills: AgentSkills, shared_tools: AgentTools | None = None, name: str = "skillhall"
    ) -> None:
        self._name = name
        self._skills = skills
        self._shared_tools = shared_tools  # that all runs belong to, if they do
        self.tools = shared_tools or AgentTools(skills)

    @property
    def id(self) -> str:
        """What tells it apart from other toolsets of the agent."""
        return self._name

    async def for_run(self, ctx: RunContext[Any]) -> SkillsToolset:
        """The toolset of one run."""
        own = SkillsToolset(self._skills, self._shared_tools, self._name)
        said = [ctx.prompt] if isinstance(ctx.prompt, str) else []
        own.tools.sync_history([*iter_texts(ctx.messages), *said])
        return own

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart | None:
        """What the system prompt says; nothing without skills."""
        del ctx
        text = await asyncio.to_thread(self.tools.system_prompt)
        return InstructionPart(text, dynamic=True) if text else None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools there are now."""
        del ctx
        tools = await asyncio.to_thread(self.tools.tools)
        definitions = [
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema={**tool.parameters},
                strict=False,
            )
            for tool in tools
        ]
        return {
            one.name: ToolsetTool(
                toolset=self, tool_def=one, max_retries=MAX_RETRIES, args_validator=_ANY_VALIDATOR
            )
            for one in definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """What the tool answers, errors too: the model reads them and goes on."""
        del ctx, tool
        answer = await asyncio.to_thread(self.tools.call, name, tool_args)
        return to_text(answer.content)


def iter_texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """What people and tools said in a conversation."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, ToolReturnPart | UserPromptPart):
                    yield part.content if isinstance(part.content, str) else ""
