"""The commands by name. A command's module is imported when it is used, not before."""

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

# Help texts are here, so that `skillhall --help` imports no command.
COMMAND_SECTIONS = {
    "Common commands": {
        "list": "List skills.",
        "add": "Add skills from a folder, an archive, a repository or the web.",
        "init": "Create a new skill.",
        "validate": "Check skills and report problems line by line.",
        "serve": "Serve skills and prompts over HTTP: web pages, REST and MCP.",
    },
    "Find and read skills": {
        "search": "Search skills by words.",
        "show": "Show everything about one skill.",
        "read": "Print a skill, or one of its files, for an agent.",
        "prompt": "Print the text that tells a model about skills.",
        "scan": "Look for risky content in skills.",
        "why": "Explain which copy of a skill is used, and why.",
    },
    "Manage installed skills": {
        "install": "Install the skills in the lock file.",
        "update": "Update skills and keep local edits.",
        "outdated": "Show which skills have changed in their source.",
        "verify": "Compare installed skills with the lock file.",
        "remove": "Remove skills.",
        "rollback": "Undo the last change of a skill.",
        "agents": "List the agents that skills can be added for.",
    },
    "Run agents with skills": {
        "chat": "Talk to an agent that uses skills.",
        "session": "Manage sessions: blocks, skills, templates, and the context made of them.",
        "stats": "Show which skills agents use.",
        "local": "Manage the skills of a run directory: list, add, import, delete, share, setup.",
        "tool": "Call the tools that agents are given.",
    },
    "Connect servers": {
        "mcp": "Serve skills to an MCP client over stdin and stdout.",
        "mcp-servers": "Name MCP servers, and list and read their skills.",
        "prompts": "Use a prompt server: list, get, refresh, upload.",
        "generate": "Write the prompts of a server as skills for agents.",
        "token": "Manage the access tokens of servers: new, list, revoke.",
        "backup": "Write all sessions and templates to one file.",
        "restore": "Restore sessions and templates from a backup.",
    },
    "Configure": {
        "path": "Show the folders that are searched, and the index.",
        "profiles": "Show the profiles and what they make of each finding.",
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
    "add": "install",
    "agents": "install",
    "backup": "servers",
    "chat": "agent",
    "completion": "commands",
    "generate": "servers",
    "init": "author",
    "install": "install",
    "list": "browse",
    "local": "servers",
    "mcp": "servers",
    "mcp_servers": "servers",
    "outdated": "install",
    "path": "browse",
    "profiles": "browse",
    "prompt": "agent",
    "prompts": "servers",
    "read": "browse",
    "remove": "install",
    "restore": "servers",
    "rollback": "install",
    "scan": "author",
    "search": "browse",
    "serve": "servers",
    "session": "session",
    "show": "browse",
    "stats": "agent",
    "token": "servers",
    "tool": "agent",
    "update": "install",
    "validate": "author",
    "verify": "install",
    "why": "browse",
}


def _module_of(command: str) -> str:
    stem = command.replace("-", "_")
    topic = _TOPICS[stem]
    folder = "" if topic == "commands" else f"{topic}."
    return f"skillhall._internal.cli.commands.{folder}{stem}"


class LazyGroup(click.Group):
    """A group that knows its commands by name, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, or of the name behind an alias."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = import_module(_module_of(name))
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands in the help, by section, with the most common ones first."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name; a wrong name gets the nearest right one."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and name not in ALIASES:
            from difflib import get_close_matches

            near = get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
            raise CommandFailed(
                "usage",
                f"there is no command {name!r}",
                f"did you mean 'skillhall {near[0]}'?" if near else "see 'skillhall --help'",
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

    Data goes to stdout, everything else to stderr. With --json, every command prints one object.
    Exit codes: 0 fine, 1 something is rejected, 2 wrong usage, 3 refused, 4 not found,
    5 a host failed, 6 conflict, 7 the disk failed, 8 not let in.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def invoke(argv: Sequence[str]) -> int:
    """Run the command that `words` name; its exit code. Raises: CommandFailed for wrong usage."""
    if COMPLETE_VARIABLE in os.environ:
        return _run_shell_completion()
    try:
        # Not `cli.main`: it would turn a broken pipe into an exit code of its own.
        with cli.make_context("skillhall", [*argv]) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        raise _convert_click_error(error) from None
    return code if isinstance(code, int) else 0


def _run_shell_completion() -> int:
    """Answer the completion script of a shell."""
    from click.shell_completion import shell_complete

    instruction = os.environ[COMPLETE_VARIABLE]
    return shell_complete(cli, {}, "skillhall", COMPLETE_VARIABLE, instruction)


def _convert_click_error(error: click.ClickException) -> CommandFailed:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "skillhall"
    message = error.format_message().rstrip(".")
    hint = f"see '{path} --help'"
    command = path.partition(" ")[2] or path
    return CommandFailed("usage", message[:1].lower() + message[1:], hint, command)
