"""Claude Agent SDK adapter: an MCP server in the process, and instructions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import HookMatcher, SdkMcpTool, create_sdk_mcp_server

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._version import VERSION

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, HookContext, HookInput, HookJSONOutput

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.agents.tool_definition import Tool

SERVER_NAME = "skillhall"


def with_skills(options: ClaudeAgentOptions, skills: SkillSource) -> ClaudeAgentOptions:
    """Return a copy of the options with the current skills.

    Call this function for each conversation. Claude Code's own skills, which it would load from
    folders without asking, are turned off unless `options.skills` is set.
    Raises: TypeError if the options name a file of MCP servers or of a system prompt.

    >>> from claude_agent_sdk import ClaudeAgentOptions
    >>> options = with_skills(ClaudeAgentOptions(), Skills.load("skills"))
    >>> options.allowed_tools[2]
    'mcp__skillhall__load_skill'
    """
    if not isinstance(options.mcp_servers, dict):
        raise TypeError("mcp_servers must be a mapping, so that the skills can be added")
    tools = AgentTools(skills)

    async def forget_loaded(_: HookInput, __: str | None, ___: HookContext) -> HookJSONOutput:
        # Claude Code shortens the conversation, so the instructions may be needed again.
        tools.sync_history(())
        return {}

    offered = tools.tools()
    server = create_sdk_mcp_server(SERVER_NAME, VERSION, [*map(_build_mcp_tool, offered)])
    hooks = options.hooks or {}
    return replace(
        options,
        system_prompt=_append(options.system_prompt, tools.system_prompt()),
        mcp_servers={**options.mcp_servers, SERVER_NAME: server},
        allowed_tools=[
            *options.allowed_tools,
            *(f"mcp__{SERVER_NAME}__{tool.name}" for tool in offered),
        ],
        skills=[] if options.skills is None else options.skills,
        hooks={
            **hooks,
            "PreCompact": [*hooks.get("PreCompact", ()), HookMatcher(hooks=[forget_loaded])],
        },
    )


def _build_mcp_tool(tool: Tool) -> SdkMcpTool[Any]:
    async def call(arguments: object) -> dict[str, Any]:
        result = await asyncio.to_thread(tool.call, arguments)
        return {"content": [{"type": "text", "text": result.text}], "is_error": result.is_error}

    return SdkMcpTool(tool.name, tool.description, tool.parameters, call)


def _append(prompt: Any, text: str) -> Any:  # noqa: ANN401 - text, `None` or one of several dicts
    """Return a system prompt of the SDK with the text at its end."""
    if prompt is None or isinstance(prompt, str):
        return "\n\n".join(filter(None, (prompt, text))) or prompt
    if prompt.get("type") != "preset":
        raise TypeError("system_prompt must be text or a preset, so that the skills can be added")
    return {**prompt, "append": "\n\n".join(filter(None, (prompt.get("append"), text)))}
