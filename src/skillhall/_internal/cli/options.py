"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_F = TypeVar("_F", bound="Callable[..., Any]")
_FORMAT_META_KEY = f"{__name__}.format"


class ProfileParam(click.ParamType[str]):
    """The name of a profile. An unknown name gets a suggestion."""

    name = "profile"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the validated name."""
        from skillhall._internal.policy.profiles import PROFILES

        if value not in PROFILES:
            from difflib import get_close_matches

            matches = get_close_matches(value, PROFILES, n=1)
            suggestion = (
                f"did you mean {matches[0]!r}?" if matches else f"one of: {', '.join(PROFILES)}"
            )
            self.fail(f"unknown profile {value!r}; {suggestion}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the profiles that start with `incomplete`."""
        del ctx, param
        from skillhall._internal.policy.profiles import PROFILES

        return [
            CompletionItem(name, help=profile.summary)
            for name, profile in PROFILES.items()
            if name.startswith(incomplete)
        ]


class SkillNameParam(click.ParamType[str]):
    """The name of a skill, completed from the folders that the command searches."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the skills that start with `incomplete`."""
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
    """Add `--profile`."""
    return click.option(
        "--profile",
        type=ProfileParam(),
        default=default,
        show_default=True,
        metavar="PROFILE",
        help="Apply the rules of this profile; 'skillhall profiles' lists them.",
    )


def roots_option(function: _F) -> _F:
    """Add `--root`, for commands whose arguments are names."""
    return click.option(
        "-r",
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="Search this folder instead of the default ones. Repeatable.",
    )(function)


def json_option(function: _F) -> _F:
    """Add `--json` and its synonym `--format json`."""
    function = click.option(
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        hidden=True,
        is_eager=True,  # the callback of `--json` reads it
        expose_value=False,
        callback=_store_format,
    )(function)
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the result as one JSON object.",
        callback=_resolve_json_flag,
    )(function)


def _store_format(ctx: click.Context, _: click.Parameter, value: str) -> None:
    ctx.meta[_FORMAT_META_KEY] = value


def _resolve_json_flag(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's
    return value or ctx.meta.get(_FORMAT_META_KEY) == "json"


def format_options(formats: Sequence[str]) -> Callable[[_F], _F]:
    """Add `--format`, whose default is the first format, and `--json`."""
    json_flag = click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
    format_option = click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Print the result in this format.",
    )
    return lambda function: format_option(json_flag(function))


def no_index_option(function: _F) -> _F:
    """Add `--no-index`."""
    return click.option(
        "--no-index", is_flag=True, help="Read every file instead of using the cache."
    )(function)


def search_options(function: _F) -> _F:
    """Add `--depth` and `--follow-links`."""
    from skillhall._internal.policy.scan_rules import MAX_DEPTH

    return click.option(
        "--depth",
        type=click.IntRange(1, MAX_DEPTH),
        metavar="N",
        help="Search N levels of folders.  [default: set by the profile, else 6]",
    )(follow_links_option(function))


def follow_links_option(function: _F) -> _F:
    """Add `--follow-links`."""
    return click.option(
        "--follow-links",
        is_flag=True,
        help="Follow links that lead out of the searched folder.",
    )(function)


def config_option(function: _F) -> _F:
    """Add `--config`."""
    return click.option(
        "--config",
        metavar="FILE",
        help="Read the agents from this file.  [default: ./skillhall.toml or ./skillhall.json]",
    )(function)


def run_directory_option(function: _F) -> _F:
    """Add `--root`, the run directory of an agent."""
    return click.option(
        "--root",
        default=".",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="Use this run directory.  [default: the working directory]",
    )(function)


def confirm(question: str, *, can_ask: bool = True) -> None:
    """Ask a yes-or-no question. Raises: UsageError without a terminal, Abort for no."""
    from skillhall._internal.cli.terminal import is_interactive, sanitize_line

    text = sanitize_line(question)
    if not (can_ask and is_interactive()):
        raise click.UsageError(f"cannot ask for confirmation; use -y to answer yes to: {text}")
    click.confirm(text, abort=True, err=True)


def print_group_help(ctx: click.Context) -> None:
    """Print the help of a group that was called without a subcommand."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
