"""Options shared by the commands on a prompt server."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from skillhall._internal.cli.catalog_loader import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from skillhall._internal.prompts.generate.prompt_server import PromptClient

_F = TypeVar("_F", bound="Callable[..., Any]")
_SELECTOR_OPTIONS = (
    ("--repo", "repo", "URL", "Use the prompts of this repository instead of the server's."),
    ("--branch", "branch", "NAME", "Use this branch of the repository."),
    ("--prompt-path", "prompt_path", "PATH", "Use this folder of the repository."),
    ("--source", "source", "NAME", "Use the prompts uploaded under this name."),
)


def server_option(function: _F) -> _F:
    """Add `--server`."""
    return click.option(
        "--server",
        default="",
        metavar="URL",
        help="Connect to this server.  [default: SKILLHALL_SERVER, or http://127.0.0.1:8321]",
    )(function)


def source_selector_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that select prompts of a server, passed on as `selector`."""

    @wraps(function)
    def run(*, repo: str, branch: str, prompt_path: str, source: str, **others: object) -> int:
        return function(
            selector=_build_source_selector(repo, branch, prompt_path, source), **others
        )

    for option, name, metavar, text in reversed(_SELECTOR_OPTIONS):
        run = click.option(option, name, default="", metavar=metavar, help=text)(run)
    return run


def _build_source_selector(
    repo: str, branch: str, prompt_path: str, source: str
) -> Mapping[str, str]:
    """Return the query parameters of the server. Raises: UsageError."""
    if source and (repo or branch or prompt_path):
        raise click.UsageError("--source cannot be combined with --repo, --branch or --prompt-path")
    return {"repo": repo, "branch": branch, "path": prompt_path, "source": source}


def open_server(server: str, source_selector: Mapping[str, str] | None = None) -> PromptClient:
    """Open the client of a prompt server. Raises: SourceRejected, ConfigInvalid."""
    from skillhall._internal.prompts.generate.prompt_server import open_prompt_client

    return open_prompt_client(read_settings(), server, source_selector)
