"""The tool with which the built-in agent runs the scripts of skills, in a sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.tool_definition import Tool, ToolError, get_argument, string_schema
from skillhall._internal.evals.sandbox.script_sandbox import SCRIPT_TIMEOUT, ScriptSandbox
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.evals.run_agents.run_agent import RunTask
    from skillhall._internal.evals.sandbox.bounded_process import ProcessResult

_MAX_SHOWN = 16 * 1024  # characters of each stream
_MAX_ARGUMENTS = 100


def build_script_tool(task: RunTask, tools: AgentTools) -> Tool:
    """Return the tool for one run.

    Scripts run in its folder, from a copy of the skill.
    """
    properties: Mapping[str, Mapping[str, object]] = {
        "name": string_schema("The name of the skill."),
        "path": string_schema("The path of the script, relative to the skill's directory."),
        "arguments": {"type": "array", "items": {"type": "string"}},
    }
    return Tool(
        name="RunScript",
        description="Runs a script of a skill in your folder, without a network, and returns its "
        "output.",
        required=("name", "path"),
        get_properties=lambda: properties,
        handler=lambda arguments: _run_script(task, tools, arguments),
    )


def _run_script(task: RunTask, tools: AgentTools, arguments: object) -> str:
    name, values = get_argument(arguments, "name"), get_argument(arguments, "arguments") or []
    if not isinstance(values, list) or len(values) > _MAX_ARGUMENTS:
        raise ToolError("arguments must be a short list of strings.")
    if not all(isinstance(value, str) and "\0" not in value for value in values):
        raise ToolError("arguments must be a list of strings.")
    try:
        row = tools.current_view().find(str(name))
        path = RelativePath.parse(str(get_argument(arguments, "path")))
    except SkillhallError as error:
        raise ToolError(f"{error}.") from None
    # A copy for this run: a script must not change the skill of other runs.
    source = Path(row.skill.directory)
    scripts = task.home.with_name("scripts")
    folder = scripts / source.name
    if not folder.exists():
        shutil.copytree(source, folder)
    script = folder.joinpath(*path.parts)
    if not script.is_file():
        raise ToolError("the skill has no such file.")
    sandbox = ScriptSandbox(
        folder=task.folder,
        home=task.home,
        scripts=folder,
        max_output=task.limits.max_output,
        timeout=min(SCRIPT_TIMEOUT, task.limits.timeout),
    )
    try:
        return _format_result(sandbox.run(script, values))
    except OSError as error:
        raise ToolError(f"the script cannot be started: {error}.") from None


def _format_result(result: ProcessResult) -> str:
    parts = [f"Exit code: {result.exit_code}"]
    parts += [f"Stopped: {result.limit}"] if result.limit else []
    for title, data in (("Output", result.stdout), ("Errors", result.stderr)):
        text = data.decode("utf-8", "replace")
        if text:
            parts.append(f"{title}:\n{text[:_MAX_SHOWN]}")
    return "\n".join(parts)
