"""`skillhall update`: what the sources changed, without losing what was changed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.commands.install.update_output import (
    compute_exit_code,
    print_details,
    print_results,
)
from skillhall._internal.cli.commands.install.update_output import (
    print_results_json as results_as_json,
)
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkillParam
from skillhall._internal.cli.project_options import open_project, user_scope_option
from skillhall._internal.cli.terminal import print_message

if TYPE_CHECKING:
    from skillhall._internal.installer.update import ConflictChoice


@click.command("update", epilog="Example: skillhall update pdf --conflicts theirs")
@click.argument("names", nargs=-1, type=InstalledSkillParam(), metavar="[NAME]...")
@user_scope_option
@click.option(
    "--conflicts",
    "take",
    type=click.Choice(["mine", "theirs"]),
    help="Where both sides changed the same lines: keep yours, or take theirs.",
)
@click.option(
    "--check",
    "-n",
    "--dry-run",
    "is_check",
    is_flag=True,
    help="Only say what is newer, as 'outdated' does.",
)
@json_option
def command(
    *,
    names: tuple[str, ...],
    is_user: bool,
    take: ConflictChoice | None,
    is_check: bool,
    as_json: bool,
) -> int:
    """Update the skills NAME..., or all in the lock.

    Files that you did not touch are replaced; those that you edited are merged with what changed
    upstream. If both changed the same lines, the skill stays as it is and the files are named.
    'skillhall rollback NAME' takes an update back.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.update import find_outdated, update

    shelf = open_project(is_user=is_user)
    with transfer_progress() as progress:
        if is_check:
            results = find_outdated(shelf, names, progress)
        else:
            results = update(shelf, names, conflicts=take, progress=progress)
    if as_json:
        results_as_json("update", results)
    else:
        print_results(results)
        print_details(results)
        print_message(
            f"{format_count(sum(one.status == 'updated' for one in results), 'skill')} updated"
        )
    return compute_exit_code(results)
