"""`skillhall tool`: lists and calls the tools of agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.errors import FAILED, CommandFailed
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option, print_group_help, run_directory_option
from skillhall._internal.cli.param_types import ConfiguredAgentParam
from skillhall._internal.cli.terminal import print_text, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.tool_protocol import Tool, ToolResult

_EPILOG = """Example: skillhall tool call ReadFile '{"path": "README.md"}'"""


_agent_option = click.option(
    "--agent",
    type=ConfiguredAgentParam(),
    metavar="ID",
    help="Use the tools of this agent of the config, or of the 'default' agent.",
)


@click.group("tool", invoke_without_command=True, epilog=_EPILOG)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Call the tools that agents use. 'list' and 'call' accept --json."""
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall tool list --json")
@run_directory_option
@_agent_option
@json_option
def list_tools(*, root: str, agent: str | None, as_json: bool) -> int:
    """List the tools of an agent that runs in the run directory."""
    tools = _load_tools(root, agent)
    if as_json:
        entries = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in tools.values()
        ]
        print_json_report("tool list", {"tools": entries})
    else:
        for tool in tools.values():
            sys.stdout.write(f"{sanitize_line(tool.name)}\t{sanitize_line(tool.description)}\n")
    return 0


@command.command("call", epilog=_EPILOG)
@click.argument("name")
@click.argument("arguments", default="{}")
@run_directory_option
@_agent_option
@json_option
def call_tool(*, name: str, arguments: str, root: str, agent: str | None, as_json: bool) -> int:
    """Call the tool NAME and print its result as models see it.

    ARGUMENTS is a JSON object. If the result is an error, the exit code is 1.
    """
    parsed = _parse_arguments(arguments)
    result = _find_tool(_load_tools(root, agent), name).call(parsed)
    if as_json:
        _print_json(name, result)
    else:
        text = _format_result(result)
        print_text(text if text.endswith("\n") else f"{text}\n")
    return FAILED if result.is_error else 0


def _load_tools(root: str, agent: str | None) -> Mapping[str, Tool]:
    if agent is not None:
        return _load_agent_tools(root, agent)
    from skillhall._internal.api.compat.toolbox import tools_for

    return tools_for(root, read_settings())


def _load_agent_tools(root: str, agent: str) -> Mapping[str, Tool]:
    """Return the tools that an agent has in a chat or through an adapter."""
    from pathlib import Path

    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.cli.agent_selection import open_agent_skills

    settings = read_settings()._replace(working_directory=str(Path(root).absolute()))
    skills = open_agent_skills(None, agent, (), settings._replace(log_usage=False))
    return {tool.name: tool for tool in AgentTools(skills).tools()}


def _find_tool(tools: Mapping[str, Tool], name: str) -> Tool:
    if name in tools:
        return tools[name]
    from difflib import get_close_matches

    by_lower = {known.lower(): known for known in tools}
    matches = [by_lower[match] for match in get_close_matches(name.lower(), by_lower)]
    suggestion = f"did you mean {' or '.join(map(repr, matches))}?" if matches else ""
    hint = suggestion or f"available tools: {', '.join(tools)}"
    raise CommandFailed("not_found", f"unknown tool {name!r}", hint, "tool call")


def _parse_arguments(text: str) -> object:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "cannot be parsed"
        raise click.UsageError(
            f"the arguments are not valid JSON: {problem[:1].lower()}{problem[1:]}"
        ) from None


def _format_result(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    import json

    return json.dumps(result.content, ensure_ascii=False, indent=2)


def _print_json(name: str, result: ToolResult) -> None:
    error = None
    if result.is_error:
        error = {"code": "tool_error", "message": f"{name} returned an error"}
    data = {"tool": name, "answer": result.content, "isError": result.is_error}
    print_json_report("tool call", data, error=error)
