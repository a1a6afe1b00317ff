"""Options that several commands share."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeAlias, TypeVar

import click

from skillhall._internal.cli.command_result import (
    JSON_META_KEY,
    CommandResult,
    is_json,
    print_result,
)
from skillhall._internal.cli.param_types import ProfileParam, complete_configured_agent
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.cli.terminal import is_interactive, sanitize_line
from skillhall._internal.policy.folder_walk_rules import MAX_DEPTH

Command: TypeAlias = "Callable[..., CommandResult | int | None]"

_F = TypeVar("_F", bound="Callable[..., Any]")

# An option without a value, such as `--yes`.
flag = partial(click.option, is_flag=True)

yes_option = flag("-y", "--yes", help="Do not ask for confirmation.")
dry_run_option = flag("-n", "--dry-run", help="Show what would be done without doing it.")
no_index_option = flag("--no-index", help="Read every file instead of using the cache.")
follow_links_option = flag(
    "--follow-links", help="Follow symbolic links that lead out of the searched folder."
)
depth_option = click.option(
    "--depth",
    type=click.IntRange(1, MAX_DEPTH),
    metavar="N",
    help="Search N levels of folders.  [default: set by the profile, else 6]",
)
config_option = click.option(
    "--config",
    metavar="FILE",
    help="Read the agents from this file.  [default: ./skillhall.toml or ./skillhall.json]",
)
# The option for the run directory of an agent.
run_directory_option = click.option(
    "--root",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Use this run directory.  [default: the working directory]",
)
# The option for roots of commands whose arguments are names.
roots_option = click.option(
    "-r",
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="Search this folder instead of the default ones. Repeatable.",
)


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


def configured_agent_option(text: str) -> Callable[[_F], _F]:
    """Add `--agent`, the id of an agent in the config."""
    return click.option(
        "--agent", metavar="ID", help=text, shell_complete=complete_configured_agent
    )


def root_search_options(function: Command) -> Command:
    """Add the ROOT argument and the search options, passed on as `search`."""
    roots = click.argument("roots", nargs=-1, metavar="[ROOT]...")
    return roots(
        profile_option()(depth_option(follow_links_option(no_index_option(_pack_search(function)))))
    )


def skill_search_options(function: Command) -> Command:
    """Add --root and the search options, passed on as `search`."""
    return roots_option(profile_option()(depth_option(follow_links_option(_pack_search(function)))))


def _pack_search(function: Command) -> Command:
    @wraps(function)
    def run(
        *,
        roots: tuple[str, ...],
        profile: str,
        depth: int | None,
        follow_links: bool,
        no_index: bool = False,
        **others: object,
    ) -> CommandResult | int | None:
        search = SearchOptions(roots, profile, depth, follow_links, no_index)
        return function(search=search, **others)

    return run


def json_command(
    name: str, example: str, *, formats: Sequence[str] = (), group: click.Group | None = None
) -> Callable[[Command], click.Command]:
    """Create a command that prints its result as text, or as JSON with `--json`.

    With `formats`, the help shows `--format` with these choices, the first of which is the default,
    and the function gets `output_format`. With `group`, the command is added to that group.
    """

    def decorate(function: Command) -> click.Command:
        @wraps(function)
        def run(*, output_format: str, as_json: bool, **parameters: object) -> int | None:
            output_format = "json" if as_json else output_format
            click.get_current_context().meta[JSON_META_KEY] = output_format == "json"
            if formats:
                parameters["output_format"] = output_format
            return print_result(function(**parameters))

        command = click.command(name, epilog=f"Example: {example}")(run)
        choices = formats or ("text", "json")
        command.params += [
            click.Option(
                ["--format", "output_format"],
                type=click.Choice(choices),
                default=choices[0],
                show_default=True,
                hidden=not formats,  # every command accepts `--format json`
                help="Print the result in this format.",
            ),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print the result as one JSON object."
            ),
        ]
        if group is not None:
            group.add_command(command)
        return command

    return decorate


def can_ask() -> bool:
    """Whether the user can be asked; false without a terminal, in CI and with --json."""
    return is_interactive() and not is_json()


def confirm(question: str) -> None:
    """Ask a yes-or-no question.

    Raises: click.UsageError if it cannot be asked, click.Abort if the answer is no.
    """
    text = sanitize_line(question)
    if not can_ask():
        raise click.UsageError(f"cannot ask for confirmation; use --yes to answer yes to: {text}")
    click.confirm(text, abort=True, err=True)


_DEFAULT_COMMAND = "(names)"  # not a possible argument


class DefaultCommandGroup(click.Group):
    """A group with a default command, which takes arguments such as skill names."""

    default: click.Command

    def set_default(self, command: click.Command) -> click.Command:
        """Set the default command; for use as a decorator."""
        self.default = command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave everything but subcommands and the help to the default command."""
        if (args and args[0] in self.commands) or {"-h", "--help"} & {*args}:
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, [_DEFAULT_COMMAND, *args])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand, or the default command."""
        if args[0] == _DEFAULT_COMMAND:
            return "", self.default, args[1:]
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage of the default command."""
        return self.default.collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the default command, then the subcommands."""
        self.default.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def command_group(name: str, text: str, *, epilog: str | None = None) -> click.Group:
    """Return a group of commands that prints its help if called without a subcommand."""
    group = click.Group(name, help=text, epilog=epilog, invoke_without_command=True)

    def print_help() -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            click.echo(context.get_help())

    group.callback = print_help
    return group
