"""Options of the commands on installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.param_types import CompletedParamType
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.rollback import list_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

user_scope_option = click.option(
    "-g",
    "--global",
    "is_user",
    is_flag=True,
    help="Use the skills in your home folder instead of the project's.",
)


class CodingAgentParam(CompletedParamType):
    """A supported coding agent."""

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the ids of the supported coding agents."""
        del params
        return [(agent, "") for agent in sorted(AGENTS)]


class InstalledSkillParam(CompletedParamType):
    """A skill in the lock file."""

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the folder names in the lock file."""
        project = open_project(is_user=bool(params.get("is_user")))
        return _list_folder_names(project.read_lock().entries)


class RollbackSkillParam(CompletedParamType):
    """A skill with a change that can be rolled back."""

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the folder names in the history."""
        changes = list_changes(open_project(is_user=bool(params.get("is_user"))))
        return _list_folder_names(path for change in changes for path in change.paths)


def _list_folder_names(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, "") for name in sorted({path.rpartition("/")[2] for path in paths})]


def open_project(*, is_user: bool, follow_links: bool = False) -> Project:
    """Open the project, or the user scope."""
    return Project.from_settings(read_settings(follow_links=follow_links), user=is_user)
