"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_F = TypeVar("_F", bound="Callable[..., Any]")
_FORMAT_META_KEY = f"{__name__}.format"


class ProfileParam(click.ParamType[str]):
    """The name of a profile; a wrong one gets the nearest right one."""

    name = "profile"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The checked name."""
        from skillhall._internal.policy.profiles import PROFILES

        if value not in PROFILES:
            from difflib import get_close_matches

            near = get_close_matches(value, PROFILES, n=1)
            told = f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(PROFILES)}"
            self.fail(f"there is no profile {value!r}; {told}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The profiles that begin so."""
        del ctx, param
        from skillhall._internal.policy.profiles import PROFILES

        return [
            CompletionItem(name, help=profile.summary)
            for name, profile in PROFILES.items()
            if name.startswith(incomplete)
        ]


class SkillNameParam(click.ParamType[str]):
    """The name of a skill, completed from the folders that the command would search."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The skills that begin so."""
        del param
        from skillhall._internal.cli.terminal import sanitize_line
        from skillhall._internal.wiring.catalog import load_catalog

        roots = ctx.params.get("roots") or ()
        catalog = load_catalog(roots, ctx.params.get("profile") or "lenient")
        return [
            CompletionItem(sanitize_line(skill.name), help=sanitize_line(skill.description)[:80])
            for skill in catalog
            if skill.name.startswith(incomplete)
        ]


def profile_option(default: str = "lenient") -> Callable[[_F], _F]:
    """`--profile`: which rules apply."""
    return click.option(
        "--profile",
        type=ProfileParam(),
        default=default,
        show_default=True,
        metavar="PROFILE",
        help="The rules to apply; 'skillhall profiles' shows them all.",
    )


def roots_option(function: _F) -> _F:
    """`--root`: where to look, for commands whose arguments are names."""
    return click.option(
        "-r",
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="A folder to search instead of the usual ones; may be repeated.",
    )(function)


def json_option(function: _F) -> _F:
    """`--json`, and `--format json`, which means the same."""
    function = click.option(
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        hidden=True,
        is_eager=True,  # so that it is known when `--json` is asked
        expose_value=False,
        callback=_store_format,
    )(function)
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print one JSON object.",
        callback=_resolve_json_flag,
    )(function)


def _store_format(ctx: click.Context, _: click.Parameter, value: str) -> None:
    ctx.meta[_FORMAT_META_KEY] = value


def _resolve_json_flag(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's
    return value or ctx.meta.get(_FORMAT_META_KEY) == "json"


def no_index_option(function: _F) -> _F:
    """`--no-index`: read everything afresh."""
    return click.option(
        "--no-index", is_flag=True, help="Read every file, without the index of earlier runs."
    )(function)


def search_options(function: _F) -> _F:
    """`--depth` and `--follow-links`: how far a search goes."""
    from skillhall._internal.policy.scan_rules import MAX_DEPTH

    return click.option(
        "--depth",
        type=click.IntRange(1, MAX_DEPTH),
        metavar="N",
        help="Search N levels of folders.  [default: 6, or what the profile says]",
    )(follow_links_option(function))


def follow_links_option(function: _F) -> _F:
    """`--follow-links`: links may lead out of the searched folders."""
    return click.option(
        "--follow-links",
        is_flag=True,
        help="Follow links from a searched folder to folders outside of it.",
    )(function)


def config_option(function: _F) -> _F:
    """`--config`: where the agents are described."""
    return click.option(
        "--config",
        metavar="FILE",
        help="The agent config; skillhall.toml or skillhall.json here if not given.",
    )(function)


def run_directory_option(function: _F) -> _F:
    """`--root`: the run directory of an agent."""
    return click.option(
        "--root",
        default=".",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="The run directory; the working directory if not given.",
    )(function)


def print_group_help(ctx: click.Context) -> None:
    """What a group of commands says when none of them is named."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
