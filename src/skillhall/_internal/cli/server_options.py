"""What the commands on a prompt server share: which server, which of its prompts."""

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
    ("--repo", "repo", "URL", "The prompts of this repository, not of the server's own."),
    ("--branch", "branch", "NAME", "Its branch."),
    ("--prompt-path", "prompt_path", "PATH", "Its folder of prompts."),
    ("--source", "source", "NAME", "The prompts that were uploaded under this name."),
)


def server_option(function: _F) -> _F:
    """`--server`: whom to ask."""
    return click.option(
        "--server",
        default="",
        metavar="URL",
        help="The server to ask.  [default: SKILLHALL_SERVER, or http://127.0.0.1:8321]",
    )(function)


def source_selector_options(function: Callable[..., int]) -> Callable[..., int]:
    """Which prompts of the server a command is about, as `asked`."""

    @wraps(function)
    def run(*, repo: str, branch: str, prompt_path: str, source: str, **others: object) -> int:
        return function(asked=_build_source_selector(repo, branch, prompt_path, source), **others)

    for option, name, metavar, text in reversed(_SELECTOR_OPTIONS):
        run = click.option(option, name, default="", metavar=metavar, help=text)(run)
    return run


def _build_source_selector(
    repo: str, branch: str, prompt_path: str, source: str
) -> Mapping[str, str]:
    """The same as the server calls it. Raises: UsageError."""
    if source and (repo or branch or prompt_path):
        raise click.UsageError(
            "--source goes without --repo, --branch and --prompt-path", click.get_current_context()
        )
    return {"repo": repo, "branch": branch, "path": prompt_path, "source": source}


def open_server(server: str, source_selector: Mapping[str, str] | None = None) -> PromptClient:
    """The server that a command asks. Raises: SourceRejected, ConfigInvalid."""
    from skillhall._internal.prompts.generate.prompt_server import open_prompt_client

    return open_prompt_client(read_settings(), server, source_selector)
