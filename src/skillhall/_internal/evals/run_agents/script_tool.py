"""The tool with which the built-in agent runs the scripts of skills, in a sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.scripts.script_runner import SCRIPT_TIMEOUT
from skillhall._internal.agents.scripts.script_sandbox import ScriptSandbox
from skillhall._internal.agents.scripts.skill_script_tool import (
    SCRIPT_PROPERTIES,
    format_result,
    list_script_arguments,
)
from skillhall._internal.agents.skill_tools import build_tool
from skillhall._internal.agents.tool_definition import ToolError
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.agents.agent_tools import AgentTools
    from skillhall._internal.agents.skill_tools import Arguments
    from skillhall._internal.agents.tool_definition import Tool
    from skillhall._internal.evals.run_agents.run_agent import RunTask


def build_script_tool(task: RunTask, tools: AgentTools) -> Tool:
    """Return the tool for one run.

    Scripts run in its folder, from a copy of the skill.
    """
    return build_tool(
        "RunScript",
        "Runs a script of a skill in your folder, without a network, and returns its output.",
        lambda: SCRIPT_PROPERTIES,
        ("name", "path"),
        lambda arguments: _run_script(task, tools, arguments),
    )


def _run_script(task: RunTask, tools: AgentTools, arguments: Arguments) -> str:
    try:
        row = tools.current_view().find(str(arguments["name"]))
        path = RelativePath.parse(str(arguments["path"]))
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
        return format_result(sandbox.run(script, list_script_arguments(arguments)))
    except OSError as error:
        raise ToolError(f"the script cannot be started: {error}.") from None
