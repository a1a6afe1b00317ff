"""`skillhall restore`: replaces the content of the database with a backup."""

from __future__ import annotations

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.commands.session.lookup import to_missing_package_error
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import print_message


@click.command("restore", epilog="Example: skillhall restore sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Overwrite the existing database.")
@json_option
def command(*, file: Path, overwrite: bool, as_json: bool) -> int:
    """Restore the backup in FILE, completely or not at all."""
    if not file.is_file():
        raise CommandFailed("not_found", f"file not found: {file.name!r}")
    try:
        from skillhall._internal.wiring.database import restore_backup

        report = restore_backup(read_settings(), file.read_bytes(), overwrite=overwrite)
    except ModuleNotFoundError as error:
        raise to_missing_package_error(error) from None
    if as_json:
        print_json_report("restore", {"rows": report.rows, "version": report.version})
    else:
        print_message(f"{format_count(report.rows, 'row')} restored")
    return 0
