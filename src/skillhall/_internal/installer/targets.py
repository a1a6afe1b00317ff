"""Where added skills go: the folder of the first copy, and what other agents get."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.agent_folders import (
    AGENTS,
    UNIVERSAL_FOLDER,
    detect_agents,
    find_agent,
    resolve_user_folder,
    uses_universal_folder,
)
from skillhall.errors import AgentHasNoPlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.installer.agent_folders import CodingAgent
    from skillhall._internal.installer.lock import TargetKind
    from skillhall._internal.installer.project import Project

ALL_AGENTS = "*"  # all agents that are used here


class InstallTargets(NamedTuple):
    """Folders on a shelf: skills stand in the first, and are copied or linked into the others."""

    folder: str = UNIVERSAL_FOLDER
    other_folders: tuple[str, ...] = ()
    kind: TargetKind = "link"


def resolve_targets(
    project: Project, names: Iterable[str], *, copy: bool = False
) -> InstallTargets:
    """The placement for agents by their ids; many share one folder.

    Raises: UnknownAgent, AgentHasNoPlace.
    """
    agents = find_agents(project, names)
    folders = list(dict.fromkeys(_find_folder(project, agent) for agent in agents))
    if len(folders) == 1 or (copy and folders):
        return InstallTargets(folders[0], tuple(folders[1:]), "copy")
    first = os.path.realpath(project.path(UNIVERSAL_FOLDER))
    others = [one for one in folders if os.path.realpath(project.path(one)) != first]
    return InstallTargets(UNIVERSAL_FOLDER, tuple(others), "link")


def is_agent_folder(project: Project, folder: str) -> bool:
    """Whether some agent looks for skills there."""
    if not project.is_user:
        return any(agent.project_folder == folder for agent in AGENTS.values())
    home, variables = project.root, project.settings.variables
    places = (resolve_user_folder(agent, home, variables) for agent in AGENTS.values())
    return folder == UNIVERSAL_FOLDER or project.path(folder) in places


def find_agents(shelf: Project, names: Iterable[str]) -> Sequence[CodingAgent]:
    """The agents by their ids, or all that are used here. Raises: UnknownAgent."""
    wanted = list(names)
    if ALL_AGENTS in wanted:
        project = shelf.settings.working_directory
        return detect_agents(shelf.settings.home, project, shelf.settings.variables)
    return [find_agent(name) for name in wanted]


def _find_folder(project: Project, agent: CodingAgent) -> str:
    if not project.is_user:
        return agent.project_folder
    if uses_universal_folder(agent):
        return UNIVERSAL_FOLDER
    path = resolve_user_folder(agent, project.root, project.settings.variables)
    key = None if path is None else project.key(path)
    if key is None:
        raise AgentHasNoPlace(agent.id)
    return key
