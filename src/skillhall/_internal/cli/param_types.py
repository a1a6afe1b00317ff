"""Shell completion of names, and the parameter type of profiles."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completes(list_names: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]) -> Completer:
    """Return a callback for `shell_complete` that completes names.

    `list_names` gets the parameters parsed so far and returns (name, help) pairs.
    """

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        try:
            names = [*list_names(ctx.params)]
        except (SkillhallError, OSError):  # completion cannot show an error
            return []
        return [
            CompletionItem(sanitize_line(name), help=sanitize_line(text)[:80] or None)
            for name, text in names
            if name.startswith(incomplete)
        ]

    return complete


@completes
def complete_skill(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the skills in the folders that the command searches."""
    catalog = load_catalog(params.get("roots") or (), params.get("profile") or "lenient")
    return [(skill.name, skill.description) for skill in catalog]


@completes
def complete_configured_agent(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the agents of the config that the command reads."""
    from skillhall._internal.agents.config.agent_config import find_config, read_config

    path = params.get("config") or find_config(str(params.get("root") or "."))
    agents = read_config(str(path)).agents if path else ()
    return sorted((agent.id, "") for agent in agents)


@completes
def _complete_profile(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    del params
    return [(name, profile.summary) for name, profile in PROFILES.items()]


class ProfileParam(click.ParamType[str]):
    """The name of a profile. An unknown name gets a suggestion."""

    name = "profile"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of a known profile; fail with a suggestion for any other."""
        if value not in PROFILES:
            matches = find_close_names(value, PROFILES, 1)
            names = ", ".join(PROFILES)
            suggestion = f"did you mean {matches[0]!r}?" if matches else f"one of: {names}"
            self.fail(f"unknown profile {value!r}; {suggestion}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the profiles that start with `incomplete`."""
        return _complete_profile(ctx, param, incomplete)
