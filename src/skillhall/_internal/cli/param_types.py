"""Parameter types with shell completion: agents and installed skills.

They accept any text; the command validates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.project import Project


class CompletedParamType(click.ParamType[str]):
    """Text, completed from the names that a subclass lists."""

    name = "text"

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """Return all names, given the parameters before this one."""
        raise NotImplementedError

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with `incomplete`."""
        del param
        from skillhall._internal.cli.terminal import sanitize_line
        from skillhall.errors import SkillhallError

        try:
            names = sorted(set(self.list_choices(ctx.params)))
        except (SkillhallError, OSError):  # completion cannot show an error
            return []
        return [
            CompletionItem(sanitize_line(name)) for name in names if name.startswith(incomplete)
        ]


class CodingAgentParam(CompletedParamType):
    """A supported coding agent."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """Return the ids of the supported coding agents."""
        del params
        from skillhall._internal.installer.agent_folders import AGENTS

        return AGENTS


class ConfiguredAgentParam(CompletedParamType):
    """An agent of the config that the command reads."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """Return the agents of the config, if there is one."""
        from skillhall._internal.agents.config.agent_config import find_config, read_config

        path = params.get("config") or find_config(str(params.get("root") or "."))
        return [agent.id for agent in read_config(str(path)).agents] if path else []


class InstalledSkillParam(CompletedParamType):
    """A skill in the lock file."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """Return the folder names in the lock file."""
        return _folder_names(_open_project(params).read_lock().entries)


class RollbackSkillParam(CompletedParamType):
    """A skill with a change that can be rolled back."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """Return the folder names in the history."""
        from skillhall._internal.installer.rollback import list_changes

        return _folder_names(
            path for change in list_changes(_open_project(params)) for path in change.paths
        )


def _open_project(params: Mapping[str, object]) -> Project:
    from skillhall._internal.cli.project_options import open_project

    return open_project(is_user=bool(params.get("is_user")))


def _folder_names(paths: Iterable[str]) -> Iterable[str]:
    return (path.rpartition("/")[2] for path in paths)
