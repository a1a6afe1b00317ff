"""Anthropic SDK adapter: tools for its tool runner or for plain requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from anthropic.lib.tools import BetaBuiltinFunctionTool, ToolError

from skillhall._internal.agents.agent_tools import to_agent_tools

if TYPE_CHECKING:
    from anthropic.types.beta import BetaToolUnionParam

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.agents.tool_definition import Tool


class AnthropicSkillTool(BetaBuiltinFunctionTool):
    """A skill tool for the tool runner.

    For a plain request, add the result of `to_dict()` to its `tools`.

    >>> [tool.to_dict()["name"] for tool in skill_tools(Skills.load("skills"))][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    def to_dict(self) -> BetaToolUnionParam:
        """Return the definition of the tool, for the `tools` of a request."""
        entry = {
            "name": self._tool.name,
            "description": self._tool.description,
            "input_schema": self._tool.parameters,
        }
        return cast("BetaToolUnionParam", entry)

    def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
        """Call the tool. Raises: ToolError, whose text is passed to the model."""
        result = self._tool.call(input)
        if result.is_error:
            raise ToolError(result.text)
        return result.text


def skill_tools(tools: AgentTools | SkillSource) -> list[AnthropicSkillTool]:
    """Return the tools for `client.beta.messages.tool_runner(tools=…)`.

    Pass one `AgentTools` per conversation, so that no skill is loaded twice in it, and
    use its `system_prompt()` as `system`.

    >>> tools = AgentTools(Skills.load("skills"))
    >>> [tool.name for tool in skill_tools(tools)][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """
    return [AnthropicSkillTool(tool) for tool in to_agent_tools(tools).tools()]
