"""`skillhall backup` and `restore`: copy the database to a file and back."""

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed, require_database
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.terminal import format_count


@json_command("backup", "skillhall backup sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@flag("--overwrite", help="Replace FILE if it exists.")
def command(*, file: Path, overwrite: bool) -> CommandResult:
    """Back up all sessions, templates and shared files to FILE.

    'skillhall restore' restores them, to SQLite or PostgreSQL.
    """
    with require_database():
        from skillhall._internal.wiring.database import make_backup

        report = make_backup(read_settings(), str(file), overwrite=overwrite)
    return CommandResult(
        {"path": str(file), "rows": report.rows, "version": report.version},
        messages=[f"{format_count(report.rows, 'row')} written"],
    )


@json_command("restore", "skillhall restore sessions.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@flag("--overwrite", help="Overwrite the existing database.")
def restore(*, file: Path, overwrite: bool) -> CommandResult:
    """Restore the backup in FILE, completely or not at all."""
    if not file.is_file():
        raise CommandFailed("not_found", f"file not found: {file.name!r}")
    with require_database():
        from skillhall._internal.wiring.database import restore_backup

        report = restore_backup(read_settings(), file.read_bytes(), overwrite=overwrite)
    return CommandResult(
        {"rows": report.rows, "version": report.version},
        messages=[f"{format_count(report.rows, 'row')} restored"],
    )
