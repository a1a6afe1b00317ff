"""The command table. The module of a command is imported only when the command runs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.runner import COMPLETE_VARIABLE
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

# The help texts are here so that `skillhall --help` imports no command module.
COMMAND_SECTIONS = {
    "Common commands": {
        "list": "List skills.",
        "add": "Add skills from a folder, an archive, a repository or the web.",
        "init": "Create a new skill.",
        "validate": "Check skills and report problems line by line.",
        "serve": "Serve skills and prompts over HTTP: web pages, REST and MCP.",
    },
    "Find and read skills": {
        "search": "Search skills by name and description.",
        "show": "Show everything about one skill.",
        "read": "Print a skill, or one of its files, for an agent.",
        "prompt": "Print the skill listing for a system prompt.",
        "scan": "Scan skills for risky content.",
        "why": "Explain which copy of a skill is used, and why.",
    },
    "Manage installed skills": {
        "install": "Install the skills in the lock file.",
        "update": "Update skills and keep local edits.",
        "outdated": "Show which skills have changed upstream.",
        "verify": "Compare installed skills with the lock file.",
        "remove": "Remove skills.",
        "rollback": "Undo the last change to a skill.",
        "agents": "List the supported coding agents.",
    },
    "Run agents with skills": {
        "chat": "Chat with an agent that uses skills.",
        "session": "Manage sessions: blocks, skills, templates and the compiled context.",
        "stats": "Show which skills agents use.",
        "local": "Manage the skills of a run directory: list, add, import, delete, share, setup.",
        "tool": "Call the tools that agents use.",
    },
    "Connect servers": {
        "mcp": "Serve skills to an MCP client over stdin and stdout.",
        "mcp-servers": "Register MCP servers, and list and read their skills.",
        "prompts": "Use a prompt server: list, get, refresh, upload.",
        "generate": "Write the prompts of a server as skills for coding agents.",
        "token": "Manage the access tokens of servers: new, list, revoke.",
        "backup": "Back up all sessions and templates to a file.",
        "restore": "Restore sessions and templates from a backup.",
    },
    "Configure": {
        "path": "Show the searched folders and the cache.",
        "profiles": "Show the profiles and the effect of each finding.",
        "completion": "Print the completion script for a shell.",
    },
}
COMMANDS = {name: text for section in COMMAND_SECTIONS.values() for name, text in section.items()}
ALIASES = {
    "ls": "list",
    "find": "search",
    "to-prompt": "prompt",
    "new": "init",
    "create": "init",
    "i": "install",
    "sync": "install",
    "upgrade": "update",
    "check": "outdated",
    "rm": "remove",
    "uninstall": "remove",
}

_TOPICS = {
    "agent": "chat prompt stats tool",
    "author": "init scan validate",
    "browse": "list path profiles read search show why",
    "install": "add agents install outdated remove rollback update verify",
    "servers": "backup generate local mcp mcp-servers prompts restore serve token",
    "session": "session",
}
_TOPIC_OF = {name: topic for topic, names in _TOPICS.items() for name in names.split()}


class LazyGroup(click.Group):
    """A click group that imports a command's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all commands, in help order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command with this name or alias."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        package = "skillhall._internal.cli.commands"
        if name in _TOPIC_OF:
            package = f"{package}.{_TOPIC_OF[name]}"
        command: click.Command = import_module(f"{package}.{name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, the common ones first."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command in `args`. For an unknown name, suggest the closest one."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and name not in ALIASES:
            from difflib import get_close_matches

            matches = get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
            raise CommandFailed(
                "usage",
                f"unknown command {name!r}",
                f"did you mean 'skillhall {matches[0]}'?" if matches else "see 'skillhall --help'",
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    name="skillhall",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: skillhall validate .agents/skills",
)
@click.version_option(VERSION, "-V", "--version", message="skillhall %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find, check and render Agent Skills: folders with a SKILL.md.

    Data goes to stdout, messages to stderr. With --json, every command prints one JSON object.
    Exit codes: 0 success, 1 check failed, 2 usage error, 3 rejected, 4 not found,
    5 network error, 6 conflict, 7 storage error, 8 unauthorized.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def invoke(argv: Sequence[str]) -> int:
    """Run the command in `argv` and return its exit code. Raises: CommandFailed."""
    if COMPLETE_VARIABLE in os.environ:
        return _run_shell_completion()
    try:
        # `cli.main` would turn a broken pipe into an exit code of its own.
        with cli.make_context("skillhall", [*argv]) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        raise _convert_click_error(error) from None
    return code if isinstance(code, int) else 0


def _run_shell_completion() -> int:
    """Print completions for the shell script that called us."""
    from click.shell_completion import shell_complete

    instruction = os.environ[COMPLETE_VARIABLE]
    return shell_complete(cli, {}, "skillhall", COMPLETE_VARIABLE, instruction)


def _convert_click_error(error: click.ClickException) -> CommandFailed:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "skillhall"
    # Click writes sentences; our errors start in lower case and have no full stop.
    message = error.format_message().rstrip(".")
    hint = f"see '{path} --help'"
    command = path.partition(" ")[2] or path
    return CommandFailed("usage", message[:1].lower() + message[1:], hint, command)
