"""smolagents adapter: tools for its agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smolagents import Tool

from skillhall._internal.agents.agent_tools import to_agent_tools
from skillhall._internal.agents.tool_definition import ToolError

if TYPE_CHECKING:
    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.agents.tool_definition import Tool as SkillTool


class SmolagentsSkillTool(Tool):  # type: ignore[misc]  # smolagents has no types
    """A skill tool for `ToolCallingAgent` and `CodeAgent`.

    >>> [tool.name for tool in skill_tools(Skills.load("skills"))][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """

    skip_forward_signature_validation = True  # the parameters are those of the skill tool
    output_type = "string"

    def __init__(self, tool: SkillTool) -> None:
        super().__init__()
        self._tool = tool
        self.name = tool.name
        self.description = tool.description

    @property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """The current parameters, in the format of smolagents."""
        return {
            name: {**schema} if name in self._tool.required else {**schema, "nullable": True}
            for name, schema in self._tool.get_properties().items()
        }

    def forward(self, *values: object, **arguments: object) -> str:
        """Call the tool. Raises: ToolError, whose text is passed to the model."""
        # The code of a `CodeAgent` may pass values by position.
        given = {**dict(zip(self.inputs, values, strict=False)), **arguments}
        result = self._tool.call({key: value for key, value in given.items() if value is not None})
        if result.is_error:
            raise ToolError(result.text.removeprefix("Error: "), result.code)
        return result.text


def skill_tools(tools: AgentTools | SkillSource) -> list[SmolagentsSkillTool]:
    """Return the tools for `ToolCallingAgent(tools=…)` or `CodeAgent(tools=…)`.

    Pass one `AgentTools` per agent, use its `system_prompt()` as `instructions`, and call its
    `reset()` before each run that starts a new conversation.

    >>> tools = AgentTools(Skills.load("skills"))
    >>> [tool.name for tool in skill_tools(tools)][:3]
    ['list_skills', 'search_skills', 'load_skill']
    """
    return [SmolagentsSkillTool(tool) for tool in to_agent_tools(tools).tools()]
