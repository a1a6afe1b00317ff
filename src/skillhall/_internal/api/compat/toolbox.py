"""The toolbox: all tools of an agent in a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.file_resolver import SkillFileResolver
from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.agents.tool_protocol import ToolResult, ToolWrapper
from skillhall._internal.api.compat.skill_tool import SkillTool, create_skill_tool
from skillhall._internal.api.compat.skills_module import discover_skills
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.policy.profiles import LOCAL_SKILLS, SKILLS_MODULE
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from skillhall._internal.agents.tool_protocol import Tool

_ROOTS = [path for path, _ in (*LOCAL_SKILLS.roots, *SKILLS_MODULE.roots)]


@dataclass(frozen=True, slots=True)
class SkillToolWrapper(ToolWrapper[SkillTool]):
    """The Skill tool with the call signature of the other tools."""

    def call(self, arguments: object) -> ToolResult:
        """Return the instructions, or an error that lists the available names."""
        name = arguments.get("name") if isinstance(arguments, Mapping) else None
        content: Mapping[str, object] = {**self.tool(name if isinstance(name, str) else "")}
        return ToolResult(content, is_error="error" in content)


def tools_for(
    run_directory: str | PathLike[str],
    settings: Settings | None = None,
    *,
    extensions: Sequence[str] = (),
) -> Mapping[str, Tool]:
    """Return the tools of an agent that runs in `run_directory`, by name.

    ReadFile returns files with these `extensions`, by default those of the settings. The Skill tool
    is included if the run directory or the home folder has skills with valid names.
    """
    settings = settings or Settings.read()
    resolve = partial(_build_file_resolver, run_directory)
    read = ReadTools(run_directory, extensions, settings=settings, resolve_extra_files=resolve)
    tools: list[Tool] = [*read.tools]
    skill_tool = create_skill_tool(discover_skills(_ROOTS, Path(run_directory)))
    if skill_tool is not None:
        tools.append(SkillToolWrapper(skill_tool))
    return {tool.name: tool for tool in tools}


def _build_file_resolver(run_directory: str | PathLike[str]) -> SkillFileResolver:
    """Return a resolver for the files of the Skill tool's skills."""
    base = str(Path(run_directory).absolute())
    catalog = load_roots([Root.resolve(path, base) for path in _ROOTS], SKILLS_MODULE)
    return SkillFileResolver(SkillView("", SKILLS_MODULE, catalog), lambda row: row.skill.directory)
