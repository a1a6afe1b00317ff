"""`skillhall install`: what the lock names, as it was locked."""

from __future__ import annotations

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import to_error_info
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.project_options import (
    open_project,
    print_errors,
    print_table_or_rows,
    user_scope_option,
)
from skillhall._internal.cli.terminal import print_message


@click.command("install", epilog="Example: skillhall install --frozen")
@user_scope_option
@click.option("--frozen", is_flag=True, help="Fail if anything differs from the lock.")
@json_option
def command(*, is_user: bool, frozen: bool, as_json: bool) -> int:
    """Install the skills that the lock names and that are not here.

    Reads skillhall-lock.json, and what only skills-lock.json of 'npx skills' names. What is here
    stays as it is; with --frozen, an edited skill or a source with other files is a failure.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.locked_install import install_locked

    with transfer_progress() as progress:
        results = install_locked(open_project(is_user=is_user), frozen=frozen, progress=progress)
    failures = [(one.key, to_error_info(one.error)) for one in results if one.error is not None]
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        skills = [
            {
                "path": one.key,
                "status": one.status.value,
                **({"error": to_error_info(one.error).serialize()} if one.error else {}),
            }
            for one in results
        ]
        error = failures[0][1].serialize() if failures else None
        print_json_report("install", {"skills": skills}, (), error)
    else:
        print_table_or_rows(["skill", "status"], [(one.key, one.status) for one in results])
        print_errors(failures)
        installed = sum(one.status == "installed" for one in results)
        print_message(
            f"{format_count(installed, 'skill')} installed, "
            f"{format_count(len(failures), 'failure')}"
        )
    return max((failure.exit_code for _, failure in failures), default=0)
