"""Where added skills go: the folder of the first copy, and what other agents get."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.installer.agent_folders import (
    AGENTS,
    UNIVERSAL,
    agent_named,
    detect,
    shares_universal,
    user_folder,
)
from skillhall.errors import AgentHasNoPlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.installer.agent_folders import Agent
    from skillhall._internal.installer.lock import TargetKind
    from skillhall._internal.installer.project import Shelf

EVERY = "*"  # all agents that are used here


class Placement(NamedTuple):
    """Folders on a shelf: skills stand in the first, and are copied or linked into the others."""

    folder: str = UNIVERSAL
    others: tuple[str, ...] = ()
    kind: TargetKind = "link"


def place_for_agents(shelf: Shelf, names: Iterable[str], *, copy: bool = False) -> Placement:
    """The placement for agents by their ids; many share one folder.

    Raises: UnknownAgent, AgentHasNoPlace.
    """
    agents = agents_called(shelf, names)
    folders = list(dict.fromkeys(_folder(shelf, agent) for agent in agents))
    if len(folders) == 1 or (copy and folders):
        return Placement(folders[0], tuple(folders[1:]), "copy")
    first = os.path.realpath(shelf.path(UNIVERSAL))
    others = [one for one in folders if os.path.realpath(shelf.path(one)) != first]
    return Placement(UNIVERSAL, tuple(others), "link")


def is_agents_folder(shelf: Shelf, folder: str) -> bool:
    """Whether some agent looks for skills there."""
    if not shelf.is_user:
        return any(agent.project == folder for agent in AGENTS.values())
    home, variables = shelf.root, shelf.settings.variables
    places = (user_folder(agent, home, variables) for agent in AGENTS.values())
    return folder == UNIVERSAL or shelf.path(folder) in places


def agents_called(shelf: Shelf, names: Iterable[str]) -> Sequence[Agent]:
    """The agents by their ids, or all that are used here. Raises: UnknownAgent."""
    wanted = list(names)
    if EVERY in wanted:
        project = shelf.settings.working_directory
        return detect(shelf.settings.home, project, shelf.settings.variables)
    return [agent_named(name) for name in wanted]


def _folder(shelf: Shelf, agent: Agent) -> str:
    if not shelf.is_user:
        return agent.project
    if shares_universal(agent):
        return UNIVERSAL
    path = user_folder(agent, shelf.root, shelf.settings.variables)
    key = None if path is None else shelf.key(path)
    if key is None:
        raise AgentHasNoPlace(agent.id)
    return key
