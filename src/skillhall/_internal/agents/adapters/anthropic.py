"""Skills for the Anthropic SDK: tools for its tool runner, or as plain parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from anthropic.lib.tools import BetaBuiltinFunctionTool, ToolError

from skillhall._internal.agents.agent_tools import to_text

if TYPE_CHECKING:
    from anthropic.types.beta import BetaToolUnionParam

    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.agents.tool_protocol import Tool


class AnthropicSkillTool(BetaBuiltinFunctionTool):
    """One tool; `to_dict()` is its entry in the `tools` of a plain request."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    def to_dict(self) -> BetaToolUnionParam:
        """What the model is told of it."""
        schema: dict[str, Any] = json.loads(json.dumps(self._tool.parameters))
        told = {
            "name": self._tool.name,
            "description": self._tool.description,
            "input_schema": schema,
        }
        return cast("BetaToolUnionParam", told)

    def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
        """What the tool answers. Raises: ToolError, which the model reads."""
        answer = self._tool.call(input)
        if answer.is_error:
            raise ToolError(to_text(answer.content))
        return to_text(answer.content)


def skill_tools(tools: AgentTools) -> list[AnthropicSkillTool]:
    """The tools of one conversation, for `client.beta.messages.tool_runner(tools=…)`.

    Its `system` is `tools.system_prompt()`.
    """
    return [AnthropicSkillTool(tool) for tool in tools.tools()]
