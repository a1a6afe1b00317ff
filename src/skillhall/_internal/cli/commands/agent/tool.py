"""`skillhall tool`: lists and calls the tools of agents."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.tool_definition import Tool
from skillhall._internal.api.compat.toolbox import tools_for
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.trust_question import TrustOptions
from skillhall._internal.cli.configured_agent import open_agent_skills
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.options import (
    command_group,
    configured_agent_option,
    json_command,
    run_directory_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.hints import find_close_names

_EXAMPLE = """skillhall tool call ReadFile '{"path": "README.md"}'"""

command = command_group(
    "tool",
    "List and call the tools that agents use. All commands accept --json.",
    epilog=f"Example: {_EXAMPLE}",
)
_agent_option = configured_agent_option(
    "Use the tools of this agent from the config; 'default' needs no config."
)


@json_command("list", "skillhall tool list --json", group=command)
@run_directory_option
@_agent_option
def list_tools(*, root: str, agent: str | None) -> CommandResult:
    """List the tools that an agent has in the run directory."""
    tools = _load_tools(root, agent).values()
    entries = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in tools
    ]
    return CommandResult({"tools": entries}, rows=[(tool.name, tool.description) for tool in tools])


@json_command("call", _EXAMPLE, group=command)
@click.argument("name")
@click.argument("arguments", default="{}")
@run_directory_option
@_agent_option
def call_tool(*, name: str, arguments: str, root: str, agent: str | None) -> CommandResult:
    """Call the tool NAME and print its result as models see it.

    ARGUMENTS is a JSON object. If the result is an error, the exit code is 1.
    """
    parsed = _parse_arguments(arguments)
    result = _find_tool(_load_tools(root, agent), name).call(parsed)
    content = result.content
    text = (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
    )
    error = ErrorInfo("tool_error", f"{name} returned an error") if result.is_error else None
    return CommandResult(
        {"tool": name, "answer": content, "isError": result.is_error},
        error=error,
        exit_code=error.exit_code if error else 0,
        text=text if text.endswith("\n") else f"{text}\n",
    )


def _load_tools(root: str, agent: str | None) -> Mapping[str, Tool]:
    """Return the tools for a run directory, or those of a configured agent."""
    if agent is None:
        return tools_for(root, read_settings())
    settings = read_settings()._replace(working_directory=str(Path(root).absolute()))
    skills = open_agent_skills(None, agent, (), settings._replace(log_usage=False), TrustOptions())
    return {tool.name: tool for tool in AgentTools(skills).tools()}


def _find_tool(tools: Mapping[str, Tool], name: str) -> Tool:
    if name in tools:
        return tools[name]
    by_lower = {known.lower(): known for known in tools}
    matches = [by_lower[match] for match in find_close_names(name.lower(), by_lower)]
    suggestion = f"did you mean {' or '.join(map(repr, matches))}?" if matches else ""
    hint = suggestion or f"available tools: {', '.join(tools)}"
    raise CommandFailed("not_found", f"unknown tool {name!r}", hint, "tool call")


def _parse_arguments(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "cannot be parsed"
        raise click.UsageError(
            f"the arguments are not valid JSON: {problem[:1].lower()}{problem[1:]}"
        ) from None
