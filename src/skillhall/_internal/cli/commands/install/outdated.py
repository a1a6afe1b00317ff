"""`skillhall outdated`: which skills have news."""

from __future__ import annotations

import click

from skillhall._internal.cli.commands.install.update_output import as_json as results_as_json
from skillhall._internal.cli.commands.install.update_output import (
    exit_code,
    print_results,
    tell_details,
)
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkill
from skillhall._internal.cli.project_options import global_option, open_shelf


@click.command("outdated", epilog="Example: skillhall outdated --json")
@click.argument("names", nargs=-1, type=InstalledSkill(), metavar="[NAME]...")
@global_option
@json_option
def command(*, names: tuple[str, ...], is_user: bool, as_json: bool) -> int:
    """Show which skills of the lock have changed in their source. Nothing is changed here.

    The exit code is 1 if something is newer, and 4 if there is no lock file.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.update import outdated

    with transfer_progress() as progress:
        results = outdated(open_shelf(is_user=is_user), names, progress)
    if as_json:
        results_as_json("outdated", results)
    else:
        print_results(results)
        tell_details(results)
    return exit_code(results)
