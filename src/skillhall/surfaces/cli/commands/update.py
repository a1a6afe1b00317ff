"""`skillhall update`: what the sources changed, without losing what was changed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall.surfaces.cli.completing import InstalledSkill
from skillhall.surfaces.cli.loading import counted
from skillhall.surfaces.cli.options import json_option
from skillhall.surfaces.cli.shelves import global_option, open_shelf
from skillhall.surfaces.cli.terminal import say
from skillhall.surfaces.cli.updates import as_json as results_as_json
from skillhall.surfaces.cli.updates import exit_code, print_results, tell_details

if TYPE_CHECKING:
    from skillhall.library.updating import Take


@click.command("update", epilog="Example: skillhall update pdf --conflicts theirs")
@click.argument("names", nargs=-1, type=InstalledSkill(), metavar="[NAME]...")
@global_option
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
    take: Take | None,
    is_check: bool,
    as_json: bool,
) -> int:
    """Update the skills NAME..., or all in the lock.

    Files that you did not touch are replaced; those that you edited are merged with what changed
    upstream. If both changed the same lines, the skill stays as it is and the files are named.
    'skillhall rollback NAME' takes an update back.
    """
    from skillhall.library.updating import outdated, update
    from skillhall.surfaces.cli.progress import transfer_progress

    shelf = open_shelf(is_user=is_user)
    with transfer_progress() as progress:
        if is_check:
            results = outdated(shelf, names, progress)
        else:
            results = update(shelf, names, take=take, progress=progress)
    if as_json:
        results_as_json("update", results)
    else:
        print_results(results)
        tell_details(results)
        say(f"{counted(sum(one.status == 'updated' for one in results), 'skill')} updated")
    return exit_code(results)
