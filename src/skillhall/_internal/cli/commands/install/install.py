"""`skillhall install`: installs the skills in the lock file."""

from __future__ import annotations

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import to_error_info
from skillhall._internal.cli.json_output import print_json_report
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
@click.option("--frozen", is_flag=True, help="Fail if anything differs from the lock file.")
@json_option
def command(*, is_user: bool, frozen: bool, as_json: bool) -> int:
    """Install the missing skills of the lock file.

    Reads skillhall-lock.json, then the other skills in skills-lock.json of 'npx skills'. Installed
    skills are not changed. With --frozen, an edited skill or changed files upstream are errors.
    """
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.installer.locked_install import install_locked

    with transfer_progress() as progress:
        results = install_locked(open_project(is_user=is_user), frozen=frozen, progress=progress)
    errors = [
        (result.key, to_error_info(result.error)) for result in results if result.error is not None
    ]
    if as_json:
        skills = [
            {
                "path": result.key,
                "status": result.status.value,
                **({"error": to_error_info(result.error).serialize()} if result.error else {}),
            }
            for result in results
        ]
        error = errors[0][1].serialize() if errors else None
        print_json_report("install", {"skills": skills}, (), error)
    else:
        print_table_or_rows(
            ["skill", "status"], [(result.key, result.status) for result in results]
        )
        print_errors(errors)
        installed = sum(result.status == "installed" for result in results)
        print_message(
            f"{format_count(installed, 'skill')} installed, {format_count(len(errors), 'error')}"
        )
    return max((info.exit_code for _, info in errors), default=0)
