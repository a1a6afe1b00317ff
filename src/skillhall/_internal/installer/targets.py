"""Install targets: the folder of the first copy, and the folders of other agents."""

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

ALL_AGENTS = "*"  # every agent detected here


class InstallTargets(NamedTuple):
    """Folders of a project: the first gets the files, the others get copies or links."""

    folder: str = UNIVERSAL_FOLDER
    other_folders: tuple[str, ...] = ()
    kind: TargetKind = "link"


def resolve_targets(
    project: Project, names: Iterable[str], *, copy: bool = False
) -> InstallTargets:
    """Return the targets for agents with these ids; many agents share a folder.

    Raises: UnknownAgent, AgentHasNoPlace.
    """
    agents = find_agents(project, names)
    folders = list(dict.fromkeys(_find_folder(project, agent) for agent in agents))
    if len(folders) == 1 or (copy and folders):
        return InstallTargets(folders[0], tuple(folders[1:]), "copy")
    # An agent's folder may itself be a link to the universal folder.
    universal = os.path.realpath(project.path(UNIVERSAL_FOLDER))
    others = [folder for folder in folders if os.path.realpath(project.path(folder)) != universal]
    return InstallTargets(UNIVERSAL_FOLDER, tuple(others), "link")


def is_agent_folder(project: Project, folder: str) -> bool:
    """Whether an agent reads skills from this folder."""
    if not project.is_user:
        return any(agent.project_folder == folder for agent in AGENTS.values())
    home, variables = project.root, project.settings.variables
    folders = (resolve_user_folder(agent, home, variables) for agent in AGENTS.values())
    return folder == UNIVERSAL_FOLDER or project.path(folder) in folders


def find_agents(project: Project, names: Iterable[str]) -> Sequence[CodingAgent]:
    """Return the agents with these ids; "*" is all detected. Raises: UnknownAgent."""
    names = list(names)
    if ALL_AGENTS in names:
        settings = project.settings
        return detect_agents(settings.home, settings.working_directory, settings.variables)
    return [find_agent(name) for name in names]


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
