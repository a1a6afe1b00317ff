"""The toolbox: all tools of an agent in a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.agents.file_tools import ReadTools, SkillFileResolver
from skillhall._internal.api.compat.skill_tool import create_skill_tool
from skillhall._internal.api.compat.skills_module import discover_skills
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.trust.gate import Clearance, clear_with_fallbacks
from skillhall._internal.policy.profiles import LOCAL_SKILLS, SKILLS_MODULE
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from skillhall._internal.agents.tool_definition import Tool

_ROOTS = [path for path, _ in (*LOCAL_SKILLS.roots, *SKILLS_MODULE.roots)]


def tools_for(
    run_directory: str | PathLike[str],
    settings: Settings | None = None,
    *,
    extensions: Sequence[str] = (),
) -> Mapping[str, Tool]:
    """Return the tools of an agent that runs in `run_directory`, by name.

    ReadFile reads only files with these `extensions`; the default is the list in the settings. The
    Skill tool is included if the run directory or the home folder has skills with valid names.

    >>> sorted(tools_for("."))
    ['ListSkillFiles', 'ReadFile', 'ReadSkill']
    """
    base, settings = str(Path(run_directory).absolute()), settings or Settings.read()

    def clear() -> Clearance:
        """Load the skills of the Skill tool, and clear them with the gate."""
        catalog = load_roots([Root.resolve(path, base) for path in _ROOTS], SKILLS_MODULE)
        return clear_with_fallbacks(open_gate(settings), [*catalog], catalog.shadowed)

    def resolve_files() -> SkillFileResolver:
        view = SkillView("", SKILLS_MODULE, clear().cleared)
        return SkillFileResolver(view, lambda row: row.skill.directory)

    read = ReadTools(
        run_directory,
        extensions,
        settings=settings,
        resolve_extra_files=resolve_files,
        find_guarded_folders=lambda: [one.skill.directory for one in clear().held],
    )
    tools = [*read.tools]
    skill_tool = create_skill_tool(discover_skills(_ROOTS, Path(run_directory)))
    if skill_tool is not None:
        tools.append(skill_tool.to_tool())
    return {tool.name: tool for tool in tools}
