"""`skillhall install`: what the lock names, as it was locked."""

from __future__ import annotations

import click

from skillhall._internal.cli.catalog_loader import counted
from skillhall._internal.cli.errors import failure_of
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.project_options import (
    global_option,
    open_shelf,
    print_shelf_rows,
    tell_failures,
)
from skillhall._internal.cli.terminal import say


@click.command("install", epilog="Example: skillhall install --frozen")
@global_option
@click.option("--frozen", is_flag=True, help="Fail if anything differs from the lock.")
@json_option
def command(*, is_user: bool, frozen: bool, as_json: bool) -> int:
    """Install the skills that the lock names and that are not here.

    Reads skillhall-lock.json, and what only skills-lock.json of 'npx skills' names. What is here
    stays as it is; with --frozen, an edited skill or a source with other files is a failure.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.locked_install import restore

    with transfer_progress() as progress:
        results = restore(open_shelf(is_user=is_user), frozen=frozen, progress=progress)
    failures = [(one.key, failure_of(one.error)) for one in results if one.error is not None]
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        skills = [
            {
                "path": one.key,
                "status": one.status.value,
                **({"error": failure_of(one.error).as_json()} if one.error else {}),
            }
            for one in results
        ]
        error = failures[0][1].as_json() if failures else None
        print_report("install", {"skills": skills}, (), error)
    else:
        print_shelf_rows(["skill", "status"], [(one.key, one.status) for one in results])
        tell_failures(failures)
        installed = sum(one.status == "installed" for one in results)
        say(f"{counted(installed, 'skill')} installed, {counted(len(failures), 'failure')}")
    return max((failure.exit_code for _, failure in failures), default=0)
