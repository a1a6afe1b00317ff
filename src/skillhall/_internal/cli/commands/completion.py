"""`skillhall completion`: prints the completion script of a shell."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.runner import COMPLETE_VARIABLE

_INSTALL_COMMANDS = {
    "bash": "echo 'eval \"$(skillhall completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(skillhall completion zsh)\"' >> ~/.zshrc",
    "fish": "skillhall completion fish > ~/.config/fish/completions/skillhall.fish",
}


@click.command("completion", epilog='Example: eval "$(skillhall completion bash)"')
@click.argument("shell", type=click.Choice([*_INSTALL_COMMANDS]))
@json_option
def command(*, shell: str, as_json: bool) -> int:
    """Print the completion script for SHELL: commands, options, agents, profiles and skills."""
    script = _build_script(shell)
    if as_json:
        data = {"shell": shell, "script": script, "install": _INSTALL_COMMANDS[shell]}
        print_json_report("completion", data)
    else:
        sys.stdout.write(f"# To install it: {_INSTALL_COMMANDS[shell]}\n{script}")
    return 0


def _build_script(shell: str) -> str:
    from skillhall._internal.cli.app import cli

    completion_class = get_completion_class(shell)
    if completion_class is None:  # unreachable: click supports all three
        raise LookupError(shell)
    completion = completion_class(cli, {}, "skillhall", COMPLETE_VARIABLE)
    # `source()` would start bash to check its version, which takes long.
    return completion.source_template % completion.source_vars()
