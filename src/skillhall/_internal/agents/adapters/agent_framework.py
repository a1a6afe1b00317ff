"""Microsoft Agent Framework adapter: a context provider, and a source for its own skills."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_framework import (
    ContextProvider,
    FunctionTool,
    InlineSkillResource,
    Skill,
    SkillFrontmatter,
    SkillResource,
    SkillsSource,
)

from skillhall._internal.agents.adapters.arguments_model import build_arguments_model
from skillhall._internal.agents.agent_tools import AgentTools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_framework import (
        AgentSession,
        SessionContext,
        SkillsSourceContext,
        SupportsAgentRun,
    )

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool
    from skillhall._internal.catalog.skill_view import ViewedSkill


class SkillsContextProvider(ContextProvider):
    """Context provider that gives an agent skills.

    Use it as in `Agent(client, context_providers=[SkillsContextProvider(skills)])`. It is
    stateless: the messages of each session show which skills are loaded.

    >>> SkillsContextProvider(Skills.load("skills")).source_id
    'skillhall'
    """

    def __init__(self, skills: SkillSource, source_id: str = "skillhall") -> None:
        super().__init__(source_id)
        self._skills = skills

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add the current skills and tools to the run."""
        del agent, session, state
        run = _RunTools(self._skills, context)
        prompt, tools = await asyncio.to_thread(run.prepare)
        if prompt:
            context.extend_instructions(self.source_id, prompt)
        context.extend_tools(self.source_id, tools)


class _RunTools:
    """The tools of one run, which know the skills loaded in its messages."""

    def __init__(self, skills: SkillSource, context: SessionContext) -> None:
        self._tools = AgentTools(skills)
        self._context: SessionContext | None = context

    def prepare(self) -> tuple[str, list[FunctionTool]]:
        """Return the system prompt and the tools."""
        tools = [self._build_function_tool(tool) for tool in self._tools.tools()]
        return self._tools.system_prompt(), tools

    def _build_function_tool(self, tool: Tool) -> FunctionTool:
        def call(**arguments: object) -> str:
            return self._call(tool, arguments)

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            func=call,
            input_model=build_arguments_model(tool),
        )

    def _call(self, tool: Tool, arguments: dict[str, object]) -> str:
        # Not earlier: the provider of the history may run after this one.
        context, self._context = self._context, None
        if context is not None:
            self._tools.sync_history(_iter_texts(context))
        return tool.call(arguments).text


def _iter_texts(context: SessionContext) -> Iterator[str]:
    """Yield the texts and the results of tools in the messages before the run."""
    for message in context.get_messages(include_input=True):
        for content in message.contents:
            yield str(content.text or content.result or "")


class SkillhallSource(SkillsSource):
    """Source of skills for the framework's own `SkillsProvider`.

    With it, the framework asks for approvals of tool calls, and combines these skills with those
    of its other sources.

    >>> from agent_framework import SkillsProvider
    >>> provider = SkillsProvider(SkillhallSource(Skills.load("skills")))
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills.as_agent_skills()

    async def get_skills(self, context: SkillsSourceContext) -> list[Skill]:
        """Return the current skills."""
        del context
        view = await asyncio.to_thread(self._skills.current_view)
        return [_FrameworkSkill(row, self._skills) for row in view]


class _FrameworkSkill(Skill):
    def __init__(self, row: ViewedSkill, skills: SkillSource) -> None:
        self._frontmatter = SkillFrontmatter(name="skill", description="A skill.")
        # Set afterwards, because the constructor rejects names that our profiles accept.
        self._frontmatter.name = row.name
        self._frontmatter.description = row.skill.description
        self._skills = skills

    @property
    def frontmatter(self) -> SkillFrontmatter:
        """The name and the description."""
        return self._frontmatter

    async def get_content(self) -> str:
        """Return the text for a model that loads the skill."""
        return await self._call("load_skill")

    async def get_resource(self, name: str) -> SkillResource:
        """Return a file of the skill, which is not read yet."""

        async def read() -> str:
            return await self._call("read_skill_file", path=name)

        return InlineSkillResource(name=name, function=read)

    async def _call(self, tool: str, **arguments: str) -> str:
        tools = AgentTools(self._skills)  # new, so that each call returns the instructions
        arguments["name"] = self._frontmatter.name
        return (await asyncio.to_thread(tools.call, tool, arguments)).text
