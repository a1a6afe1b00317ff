"""Options of the commands on a prompt server."""

from collections.abc import Mapping
from functools import wraps

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import Command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.prompt_server.generate.prompt_server_client import (
    PromptClient,
    open_prompt_client,
)

_SELECTOR_OPTIONS = (
    ("--repo", "repo", "URL", "Use the prompts of this repository instead of the server's."),
    ("--branch", "branch", "NAME", "Use this branch of the repository."),
    ("--prompt-path", "prompt_path", "PATH", "Use this folder of the repository."),
    ("--source", "source", "NAME", "Use the prompts uploaded under this name."),
)

server_option = click.option(
    "--server",
    default="",
    metavar="URL",
    help="Connect to this server.  [default: SKILLHALL_SERVER, or http://127.0.0.1:8321]",
)


def source_selector_options(function: Command) -> Command:
    """Add the options that select prompts of a server, passed on as `selector`."""

    @wraps(function)
    def run(
        *, repo: str, branch: str, prompt_path: str, source: str, **others: object
    ) -> CommandResult | int | None:
        if source and (repo or branch or prompt_path):
            raise click.UsageError(
                "--source cannot be combined with --repo, --branch or --prompt-path"
            )
        # The query parameters of the server.
        selector = {"repo": repo, "branch": branch, "path": prompt_path, "source": source}
        return function(selector=selector, **others)

    for option, name, metavar, text in reversed(_SELECTOR_OPTIONS):
        run = click.option(option, name, default="", metavar=metavar, help=text)(run)
    return run


def open_server(server: str, selector: Mapping[str, str] | None = None) -> PromptClient:
    """Open the client of a prompt server. Raises: SourceRejected, ConfigInvalid."""
    return open_prompt_client(read_settings(), server, selector)
