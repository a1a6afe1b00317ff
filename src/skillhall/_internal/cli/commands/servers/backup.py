"""`skillhall backup` and `restore`: copy the data of a server to a file and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed, require_database
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, sanitize_line
from skillhall._internal.wiring.command_actor import get_actor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.backup.server_backup import RestoreReport

_MAX_NAMES = 20  # shown of each list; --json has all
# Names of the kinds of records, in the order of the report.
_KINDS = {
    "skills": "skills",
    "systemSkills": "system skills",
    "sessions": "sessions",
    "templates": "templates",
    "uploads": "uploads",
    "tokens": "access tokens",
    "followedRepositories": "followed repositories",
    "mcpServers": "MCP servers",
    "approvals": "approvals on this machine",
}
_STEPS = {"files": "Copying files", "check": "Checking", "restore": "Restoring"}
_run_directory = click.option(
    "--run-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Use this run directory of the server.  [default: the working directory]",
)


@json_command("backup", "skillhall backup server.backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@flag("--overwrite", help="Replace FILE if it exists.")
@_run_directory
def command(*, file: Path, overwrite: bool, run_dir: str | None) -> CommandResult:
    """Back up the data of a server to FILE.

    The backup contains everything that cannot be fetched again: the database, and the folders with
    skills, uploads, followed repositories and the undo history. Servers can keep running.
    'skillhall restore' restores the backup, to SQLite or PostgreSQL.
    """
    settings = read_settings()
    settings = settings._replace(working_directory=run_dir or settings.working_directory)
    with require_database():
        from skillhall._internal.backup.server_backup import make_backup

        with transfer_progress() as progress:

            def report(step: str, done: int, total: int) -> None:
                if progress is not None:
                    progress(_STEPS[step], done, total)

            made = make_backup(settings, str(file), overwrite=overwrite, progress=report)
    totals = made.totals
    return CommandResult(
        {
            "path": str(file),
            "rows": totals.rows,
            "version": made.version,
            "files": totals.files,
            "size": made.size,
            "skipped": [*totals.skipped],
            "leftOut": [*made.left_out],
        },
        messages=[
            f"{format_count(totals.rows, 'row')} and {format_count(totals.files, 'file')} written",
            *(f"skipped {sanitize_line(text)}" for text in totals.skipped[:_MAX_NAMES]),
            *_format_rest(len(totals.skipped)),
            "Not in the backup:",
            *(f"  {text}" for text in made.left_out),
        ],
    )


@json_command("restore", "skillhall restore server.backup --dry-run")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@flag("--overwrite", help="Overwrite the existing database, skills and other data.")
@flag("--dry-run", help="Check FILE and show what would change; change nothing.")
@_run_directory
def restore(*, file: Path, overwrite: bool, dry_run: bool, run_dir: str | None) -> CommandResult:
    """Restore the backup in FILE, completely or not at all.

    Restore only backups that you trust: they contain skills, and commands that start MCP servers.
    """
    if not file.is_file():
        raise CommandFailed("not_found", f"file not found: {file.name!r}")
    settings = read_settings()
    settings = settings._replace(working_directory=run_dir or settings.working_directory)
    with require_database():
        from skillhall._internal.backup.server_backup import restore_backup

        with transfer_progress() as progress:

            def update(step: str, done: int, total: int) -> None:
                if progress is not None:
                    progress(_STEPS[step], done, total)

            report = restore_backup(
                settings,
                str(file),
                actor=get_actor(),
                overwrite=overwrite,
                dry_run=dry_run,
                progress=update,
            )
    totals = report.totals
    return CommandResult(
        {
            "rows": totals.rows,
            "version": report.version,
            "files": totals.files,
            "at": report.at,
            "dryRun": dry_run,
            "changes": {kind: changes._asdict() for kind, changes in report.changes.items()},
            "toFetch": [*report.to_fetch],
            "notes": [*report.notes],
            "leftOut": [*report.left_out],
        },
        # The preview is what a dry run is for; otherwise it only accompanies the restore.
        lines=[*_format_restore(report, dry_run=True)] if dry_run else (),
        messages=() if dry_run else [*_format_restore(report, dry_run=False)],
    )


def _format_restore(report: RestoreReport, *, dry_run: bool) -> Iterator[str]:
    rows = format_count(report.totals.rows, "row")
    files = format_count(report.totals.files, "file")
    yield f"{rows} and {files} {'would be restored' if dry_run else 'restored'}"
    for kind, noun in _KINDS.items():
        changes = report.changes.get(kind)
        if changes is None:
            continue
        lists = {"added": changes.added, "removed": changes.removed, "changed": changes.changed}
        for verb, names in lists.items():
            if names:
                yield f"{noun} {verb}: {len(names)}"
                yield from (f"  {sanitize_line(name)}" for name in names[:_MAX_NAMES])
                yield from _format_rest(len(names))
    if report.to_fetch:
        yield "The server fetches these repositories again:"
        yield from (f"  {sanitize_line(name)}" for name in report.to_fetch)
    if report.notes:
        yield "Served differently, or not restored:"
        yield from (f"  {sanitize_line(text)}" for text in report.notes[:_MAX_NAMES])
        yield from _format_rest(len(report.notes))


def _format_rest(count: int) -> Iterator[str]:
    if count > _MAX_NAMES:
        yield f"  and {count - _MAX_NAMES} more; --json lists all"
