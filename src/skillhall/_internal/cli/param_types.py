"""Parameter types whose values a shell completes: agents and installed skills.

They accept any text. The command checks it and words the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.project import Project


class CompletedParamType(click.ParamType[str]):
    """Text, completed from the names that a subclass knows."""

    name = "text"

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """All names, given the parameters before this one."""
        raise NotImplementedError

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The known names that begin with `incomplete`."""
        del param
        from skillhall._internal.cli.terminal import sanitize_line
        from skillhall.errors import SkillhallError

        try:
            names = sorted(set(self.list_choices(ctx.params)))
        except (SkillhallError, OSError):  # a shell has no place for a message
            return []
        return [
            CompletionItem(sanitize_line(name)) for name in names if name.startswith(incomplete)
        ]


class CodingAgentParam(CompletedParamType):
    """An agent that skills can be added for."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """The supported agents."""
        del params
        from skillhall._internal.installer.agent_folders import AGENTS

        return AGENTS


class ConfiguredAgentParam(CompletedParamType):
    """An agent of the config that the command would read."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """The agents of the config, if there is one."""
        from skillhall._internal.agents.config.agent_config import find_config, read_config

        path = params.get("config") or find_config(str(params.get("root") or "."))
        return [agent.id for agent in read_config(str(path)).agents] if path else []


class InstalledSkillParam(CompletedParamType):
    """A skill in the lock file."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """The folder names in the lock file."""
        return _folder_names(_open_project(params).read_lock().entries)


class RollbackSkillParam(CompletedParamType):
    """A skill with a change that can be rolled back."""

    def list_choices(self, params: Mapping[str, object]) -> Iterable[str]:
        """The folder names in the history."""
        from skillhall._internal.installer.rollback import list_changes

        return _folder_names(
            place for one in list_changes(_open_project(params)) for place in one.paths
        )


def _open_project(params: Mapping[str, object]) -> Project:
    from skillhall._internal.cli.project_options import open_project

    return open_project(is_user=bool(params.get("is_user")))


def _folder_names(paths: Iterable[str]) -> Iterable[str]:
    return (place.rpartition("/")[2] for place in paths)
