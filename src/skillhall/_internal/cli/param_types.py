"""Parameter types with shell completion: profiles, skills and agents."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


class CompletedParamType(click.ParamType[str]):
    """Text, completed from the names that a subclass lists. The command validates it."""

    name = "text"

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return all names with their help, given the parameters before this one."""
        raise NotImplementedError

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with `incomplete`."""
        del param
        try:
            choices = [*self.list_choices(ctx.params)]
        except (SkillhallError, OSError):  # completion cannot show an error
            return []
        return [
            CompletionItem(sanitize_line(name), help=sanitize_line(text)[:80] or None)
            for name, text in choices
            if name.startswith(incomplete)
        ]


class ProfileParam(CompletedParamType):
    """The name of a profile. An unknown name gets a suggestion."""

    name = "profile"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the validated name."""
        if value not in PROFILES:
            matches = get_close_matches(value, PROFILES, n=1)
            suggestion = (
                f"did you mean {matches[0]!r}?" if matches else f"one of: {', '.join(PROFILES)}"
            )
            self.fail(f"unknown profile {value!r}; {suggestion}", param, ctx)
        return value

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the profiles."""
        del params
        return [(name, profile.summary) for name, profile in PROFILES.items()]


class SkillNameParam(CompletedParamType):
    """The name of a skill in the folders that the command searches."""

    name = "name"

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the skills of the catalog."""
        catalog = load_catalog(params.get("roots") or (), params.get("profile") or "lenient")
        return [(skill.name, skill.description) for skill in catalog]


class ConfiguredAgentParam(CompletedParamType):
    """An agent of the config that the command reads."""

    def list_choices(self, params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the agents of the config, if there is one."""
        from skillhall._internal.agents.config.agent_config import find_config, read_config

        path = params.get("config") or find_config(str(params.get("root") or "."))
        agents = read_config(str(path)).agents if path else ()
        return sorted((agent.id, "") for agent in agents)
