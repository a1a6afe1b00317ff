"""`skillhall backup`: writes the database to a file."""

from __future__ import annotations

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.commands.session.lookup import to_missing_package_error
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import print_message


@click.command("backup", epilog="Example: skillhall backup sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@json_option
def command(*, file: Path, overwrite: bool, as_json: bool) -> int:
    """Back up all sessions, templates and shared files to FILE.

    'skillhall restore' restores them, to SQLite or PostgreSQL.
    """
    try:
        from skillhall._internal.wiring.database import make_backup

        report = make_backup(read_settings(), str(file), overwrite=overwrite)
    except ModuleNotFoundError as error:
        raise to_missing_package_error(error) from None
    if as_json:
        print_json_report(
            "backup", {"path": str(file), "rows": report.rows, "version": report.version}
        )
    else:
        print_message(f"{format_count(report.rows, 'row')} written")
    return 0
