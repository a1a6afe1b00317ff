"""`skillhall remove`: removes installed skills."""

from __future__ import annotations

import click

from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkillParam
from skillhall._internal.cli.project_options import open_project, user_scope_option
from skillhall._internal.cli.terminal import is_interactive, print_lines, sanitize_line


@click.command("remove", epilog="Example: skillhall remove pdf --yes")
@click.argument("names", nargs=-1, required=True, type=InstalledSkillParam(), metavar="NAME...")
@user_scope_option
@click.option(
    "-f", "--force", is_flag=True, help="Remove even edited skills and those not in the lock file."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def command(*, names: tuple[str, ...], is_user: bool, force: bool, yes: bool, as_json: bool) -> int:
    """Remove the skills NAME... from every agent's folder and from the lock file.

    'skillhall rollback NAME' restores a skill.
    """
    from skillhall._internal.installer.remove import remove

    project = open_project(is_user=is_user)
    if not yes:
        if as_json or not is_interactive():
            raise click.UsageError("use --yes to remove without confirmation")
        click.confirm(f"Remove {sanitize_line(', '.join(names))}?", abort=True, err=True)
    keys = remove(project, names, force=force)
    if as_json:
        print_json_report("remove", {"removed": keys})
    else:
        print_lines(sanitize_line(key) for key in keys)
    return 0
