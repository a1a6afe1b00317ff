"""`skillhall init`: creates a skill."""

import os

import click

from skillhall._internal.authoring.scaffold import DEFAULT_DESCRIPTION, create_skill
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import can_ask, flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.wiring.project_review import approve_own_skill
from skillhall.errors import SkillRejected


@json_command("init", 'skillhall init pdf-tools --description "Reads PDF files."')
@click.argument("name", required=False)
@click.option(
    "--dir",
    "directory",
    default=".",
    metavar="DIR",
    help="Create the skill in this folder.  [default: the working directory]",
)
@click.option(
    "--description", metavar="TEXT", help="Describe what the skill does and when to use it."
)
@flag("--no-input", help="Never prompt for input.")
def command(
    *, name: str | None, directory: str, description: str | None, no_input: bool
) -> CommandResult:
    """Create the folder NAME with a SKILL.md that follows the specification."""
    if name is None:
        if no_input or not can_ask():
            raise click.UsageError("missing argument 'NAME'")
        name = click.prompt("Name", err=True)
        description = description or click.prompt(
            "Description", default=DEFAULT_DESCRIPTION, err=True
        )
    parent = os.path.abspath(os.path.expanduser(directory))  # noqa: PTH100, PTH111
    try:
        created = create_skill(parent, name, description or DEFAULT_DESCRIPTION)
    except SkillRejected as error:
        if "/" in name:
            error.hint = "NAME is only the name of the skill; use --dir for the folder"
        raise
    approve_own_skill(read_settings(), created.name, created.path, "skillhall init")
    return CommandResult(
        {"name": created.name, "path": created.path, "location": created.location},
        lines=[created.location],
        messages=[f"created; now edit it, then run 'skillhall validate {created.path}'"],
    )
