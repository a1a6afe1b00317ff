"""`skillhall update`: updates skills and keeps local edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.commands.install.update_output import (
    compute_exit_code,
    print_details,
    print_results,
    print_results_json,
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
    type=click.Choice(["mine", "theirs"]),
    help="Resolve conflicting lines with your version or the upstream one.",
)
@click.option(
    "--check",
    "-n",
    "--dry-run",
    "is_check",
    is_flag=True,
    help="Only show available updates, like 'outdated'.",
)
@json_option
def command(
    *,
    names: tuple[str, ...],
    is_user: bool,
    conflicts: ConflictChoice | None,
    is_check: bool,
    as_json: bool,
) -> int:
    """Update the skills NAME..., or all skills in the lock file.

    Unedited files are replaced; your edits are merged with the upstream changes. If both changed
    the same lines, the skill is not updated and the conflicting files are listed.
    'skillhall rollback NAME' undoes an update.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.update import find_outdated, update

    project = open_project(is_user=is_user)
    with transfer_progress() as progress:
        if is_check:
            results = find_outdated(project, names, progress)
        else:
            results = update(project, names, conflicts=conflicts, progress=progress)
    if as_json:
        print_results_json("update", results)
    else:
        print_results(results)
        print_details(results)
        updated = sum(result.status == "updated" for result in results)
        print_message(f"{format_count(updated, 'skill')} updated")
    return compute_exit_code(results)
