"""`skillhall backup`: everything in the database as one file."""

from __future__ import annotations

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.commands.session.lookup import missing_package
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import say


@click.command("backup", epilog="Example: skillhall backup sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@json_option
def command(*, file: Path, overwrite: bool, as_json: bool) -> int:
    """Write all sessions, templates and shared files into FILE.

    'skillhall restore' brings them back, on SQLite and on PostgreSQL alike.
    """
    try:
        from skillhall._internal.wiring.database import make_backup

        report = make_backup(read_settings(), str(file), overwrite=overwrite)
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        print_report("backup", {"path": str(file), "rows": report.rows, "version": report.version})
    else:
        say(f"{counted(report.rows, 'row')} written")
    return 0
