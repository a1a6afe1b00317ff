"""`skillhall restore`: what a backup holds, in place of what the database holds."""

from __future__ import annotations

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.commands.session.lookup import missing_package
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import say


@click.command("restore", epilog="Example: skillhall restore sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Lose what the database holds.")
@json_option
def command(*, file: Path, overwrite: bool, as_json: bool) -> int:
    """Bring back all that 'skillhall backup' wrote into FILE: everything, or nothing."""
    if not file.is_file():
        raise CommandFailed("not_found", f"there is no file {file.name!r}")
    try:
        from skillhall._internal.wiring.database import restore_backup

        report = restore_backup(read_settings(), file.read_bytes(), overwrite=overwrite)
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        print_report("restore", {"rows": report.rows, "version": report.version})
    else:
        say(f"{counted(report.rows, 'row')} brought back")
    return 0
