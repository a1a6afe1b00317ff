"""`skillhall completion`: prints the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.runner import COMPLETE_VARIABLE

_INSTALL_COMMANDS = {
    "bash": "echo 'eval \"$(skillhall completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(skillhall completion zsh)\"' >> ~/.zshrc",
    "fish": "skillhall completion fish > ~/.config/fish/completions/skillhall.fish",
}


@json_command("completion", 'eval "$(skillhall completion bash)"')
@click.argument("shell", type=click.Choice([*_INSTALL_COMMANDS]))
def command(*, shell: str) -> CommandResult:
    """Print the completion script for a shell.

    It completes commands, options, agents, profiles and skills.
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:  # unreachable: click supports all three
        raise LookupError(shell)
    group = click.get_current_context().find_root().command
    completion = completion_class(group, {}, "skillhall", COMPLETE_VARIABLE)
    # `source()` would start bash to check its version, which is slow.
    script = completion.source_template % completion.source_vars()
    install = _INSTALL_COMMANDS[shell]
    data = {"shell": shell, "script": script, "install": install}
    return CommandResult(data, text=f"# To install it: {install}\n{script}")
