"""The command table, and the group that imports the module of a chosen command.

Command modules import what they need at the top of the file. Only optional extras and heavy
branches of one command are imported inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.runner import COMPLETE_VARIABLE
from skillhall._version import VERSION

if TYPE_CHECKING:  # only completion needs it
    from click.shell_completion import CompletionItem

# Each command with its module below `commands`, as "module" or "module:attribute" (the default
# attribute is `command`), and its short help, so that `skillhall --help` imports no command module.
COMMAND_SECTIONS = {
    "Start here": {
        "init": ("author.init", "Create a new skill."),
        "add": ("install.add", "Add skills from a folder, an archive, a repository or the web."),
        "list": ("browse.list", "List skills."),
        "check": ("author.check_project", "Run all checks and print one report, for CI."),
        "serve": ("servers.serve", "Serve skills and prompts over HTTP: web pages, REST and MCP."),
        "doctor": ("doctor", "Check this machine and project, and suggest fixes."),
    },
    "Find and check": {
        "search": ("browse.search", "Search the names, descriptions and instructions of skills."),
        "show": ("browse.show", "Show everything about one skill."),
        "read": ("browse.show:read", "Print the instructions of a skill, or one of its files."),
        "why": ("browse.show:why", "Explain which copy of a skill is used, and why."),
        "validate": ("author.validate", "Check skills and report problems line by line."),
        "compat": ("author.skill_compat", "Show what each agent and library would make of skills."),
        "scan": ("author.scan", "Scan skills for risky content."),
        "eval": ("evals.eval", "Write, run and report evals: init, check, run, triggers."),
        "duplicates": ("browse.duplicates", "Find duplicate skills."),
        "profiles": ("browse.path:profiles", "Show the profiles and the effect of each finding."),
        "path": ("browse.path", "Show the searched folders and the cache."),
        "lsp": ("author.lsp", "Check skills in an editor while you type."),
        "schema": ("author.schema", "Print the JSON Schema of a file, for editors."),
    },
    "Install and maintain": {
        "install": ("install.install", "Install the skills in the lock file."),
        "update": ("install.update", "Update skills and keep local edits."),
        "outdated": ("install.update:outdated", "Show which skills have changed upstream."),
        "verify": ("install.install:verify_skills", "Compare installed skills with the lock file."),
        "remove": ("install.remove", "Remove skills."),
        "rollback": ("install.remove:rollback", "Undo the last change to a skill."),
        "trust": ("install.trust", "Approve skills that others have written: list, show."),
        "untrust": ("install.trust:untrust", "Block skills for agents."),
        "policy": ("install.policy", "Show which rules apply to each skill: check."),
        "sign": ("author.sign", "Sign skills, so that others can check who signed them."),
        "advisories": ("install.advisories", "List revoked skills, or load a list from a file."),
        "checklist": ("install.checklist", "Answer OWASP's security checklist for agentic skills."),
        "inventory": ("install.inventory", "List the skills on this machine: send."),
        "agents": ("install.install:agents", "List the supported coding agents."),
    },
    "Serve and share": {
        "mcp": ("servers.mcp", "Serve skills to an MCP client over stdin and stdout."),
        "mcp-servers": (
            "servers.mcp_servers",
            "Register MCP servers, and list and read their skills.",
        ),
        "prompts": ("servers.prompts", "Use a prompt server: list, get, refresh, upload."),
        "publish": (
            "author.publish",
            "Write skills as packages, sites and repositories that others install from.",
        ),
        "generate": (
            "servers.generate",
            "Write the prompts of a server as skills for coding agents.",
        ),
        "local": (
            "servers.local",
            "Manage the skills of a run directory: list, add, import, delete, share, setup.",
        ),
        "version": (
            "servers.version",
            "Review the versions of a server's skills, and roll back: list, diff, approve, use.",
        ),
        "revoke": ("servers.revoke", "Block a version of a skill on all machines: list."),
        "token": ("servers.token", "Manage the access tokens of servers: new, list, revoke."),
        "user": (
            "servers.user",
            "Manage the users of servers: add, list, role, disable, enable, link, remove.",
        ),
        "audit": ("servers.audit", "Show and verify the audit log of a server."),
        "backup": ("servers.backup", "Back up the data of a server to a file."),
        "restore": ("servers.backup:restore", "Restore a server from a backup."),
    },
    "Sessions": {
        "session": (
            "session.session",
            "Manage sessions: blocks, skills, templates and the compiled context.",
        ),
    },
    "Agents": {
        "chat": ("agent.chat", "Chat with an agent that uses skills."),
        "prompt": ("agent.prompt", "Print the skill listing for a system prompt."),
        "tool": ("agent.tool", "List and call the tools that agents use."),
        "stats": ("agent.stats", "Show which skills agents use."),
    },
    "Settings": {
        "embeddings": (
            "browse.embeddings",
            "Build vectors for search by meaning: status, estimate, build, clear.",
        ),
        "completion": ("completion", "Print the completion script for a shell."),
    },
}
COMMANDS = {name: row for section in COMMAND_SECTIONS.values() for name, row in section.items()}
ALIASES = {
    "ls": "list",
    "find": "search",
    "to-prompt": "prompt",
    "new": "init",
    "create": "init",
    "i": "install",
    "sync": "install",
    "upgrade": "update",
    "info": "show",
    "view": "show",
    "cat": "read",
    "lint": "validate",
    "rm": "remove",
    "uninstall": "remove",
    "undo": "rollback",
}


class LazyGroup(click.Group):
    """A click group that imports a command's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all commands, in help order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command with this name or alias; `None` if it is unknown."""
        row = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if row is None:
            return None
        module, _, attribute = row[0].partition(":")
        loaded = import_module(f"skillhall._internal.cli.commands.{module}")
        command: click.Command = getattr(loaded, attribute or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, the common ones first."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), row[1]) for name, row in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that start with `incomplete`."""
        from click.shell_completion import CompletionItem

        # Click's own method would import the module of every command for its short help.
        commands = [
            CompletionItem(name, help=row[1])
            for name, row in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command in `args`.

        Raises: CommandFailed, with a suggestion, if the name is unknown.
        """
        name = args[0]
        # `install SOURCE` adds a skill, as in other package managers; `install` has no arguments.
        if ALIASES.get(name, name) == "install" and args[1:2] and not args[1].startswith("-"):
            return super().resolve_command(ctx, ["add", *args[1:]])
        if not name.startswith("-") and name not in COMMANDS and name not in ALIASES:
            from skillhall._internal.hints import find_close_names

            matches = find_close_names(name, [*COMMANDS, *ALIASES], 1)
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
@click.option("--json", "as_json", is_flag=True, help="Print this overview as one JSON object.")
@click.pass_context
def cli(ctx: click.Context, *, as_json: bool) -> int | None:
    """Find, check, install and serve Agent Skills: folders with a SKILL.md.

    Without a command, show the state of this folder and suggested next steps.
    Aliases: ls, find, info, cat, new, rm, undo, upgrade; install SOURCE is add SOURCE.

    Data goes to stdout, messages to stderr. With --json, every command prints one JSON object.
    Exit codes: 0 success, 1 check failed, 2 usage error, 3 rejected, 4 not found,
    5 network error, 6 conflict, 7 storage error, 8 unauthorized.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"write --json after the command: {ctx.invoked_subcommand}")
        return None
    overview = import_module("skillhall._internal.cli.commands.next_steps").command
    code = ctx.invoke(overview, output_format="json" if as_json else "text", as_json=as_json)
    return code if isinstance(code, int) else None


def invoke(argv: Sequence[str]) -> int:
    """Run the command in `argv` and return its exit code. Raises: CommandFailed."""
    if COMPLETE_VARIABLE in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(
            cli, {}, "skillhall", COMPLETE_VARIABLE, os.environ[COMPLETE_VARIABLE]
        )
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


def _convert_click_error(error: click.ClickException) -> CommandFailed:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path.strip() if context else "skillhall"
    # Click writes sentences; our errors start in lower case and have no full stop.
    message = error.format_message().rstrip(".")
    hint = f"see '{path} --help'"
    command = path.partition(" ")[2] or path
    return CommandFailed("usage", message[:1].lower() + message[1:], hint, command)
