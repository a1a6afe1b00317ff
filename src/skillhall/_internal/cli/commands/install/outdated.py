"""`skillhall outdated`: shows which skills have changed upstream."""

from __future__ import annotations

import click

from skillhall._internal.cli.commands.install.update_output import (
    compute_exit_code,
    print_details,
    print_results,
    print_results_json,
)
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkillParam
from skillhall._internal.cli.project_options import open_project, user_scope_option


@click.command("outdated", epilog="Example: skillhall outdated --json")
@click.argument("names", nargs=-1, type=InstalledSkillParam(), metavar="[NAME]...")
@user_scope_option
@json_option
def command(*, names: tuple[str, ...], is_user: bool, as_json: bool) -> int:
    """Show which skills in the lock file have changed upstream, without updating them.

    The exit code is 1 if an update is available, and 4 if there is no lock file.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.update import find_outdated

    with transfer_progress() as progress:
        results = find_outdated(open_project(is_user=is_user), names, progress)
    if as_json:
        print_results_json("outdated", results)
    else:
        print_results(results)
        print_details(results)
    return compute_exit_code(results)
