"""The `skillhall session` commands that import and export."""

from pathlib import Path

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.session.lookup import workspace_command
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import can_ask, confirm, flag
from skillhall._internal.cli.terminal import format_findings
from skillhall._internal.workspace import Session
from skillhall._internal.workspace.export import export_session, write_output_file
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.serializers import (
    serialize_folder_scan,
    serialize_import_result,
    serialize_session,
)
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE
from skillhall._internal.workspace.validation import parse_zone
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import Conflict


@workspace_command("import", "import Research acme/skills/pdf")
@click.argument("session")
@click.argument("source")
@click.option(
    "-s",
    "--skill",
    "names",
    multiple=True,
    metavar="NAME",
    help="Import only this skill. Repeatable.",
)
@click.option("--zone", metavar="ZONE", help="Add the blocks to this zone.  [default: STABLE]")
@flag("--replace", help="Replace existing blocks of these skills.")
@flag("--keep", help="Keep existing blocks of these skills and add new ones.")
def import_(
    workspace: Workspace,
    session: Session,
    *,
    source: str,
    names: tuple[str, ...],
    zone: str | None,
    replace: bool,
    keep: bool,
) -> CommandResult:
    """Import the skills in SOURCE as blocks.

    SOURCE is a folder, file, repository or URL.
    """
    if replace and keep:
        raise click.UsageError("--replace cannot be combined with --keep")
    on_conflict = ImportConflict.KEEP if keep else ImportConflict.REFUSE
    if replace:
        on_conflict = ImportConflict.REPLACE
    options = ImportOptions(None if zone is None else parse_zone(zone), on_conflict, names)
    path = Path(source)
    if path.suffix.lower() == ".md" and path.is_file():
        choices = workspace.importer.read_upload(path.read_bytes(), path.name, LOCAL_SOURCE)
    else:
        choices = workspace.importer.read_source(source)
    try:
        result = workspace.importer.import_choices(session.id, choices, options)
    except Conflict as error:
        if on_conflict is not ImportConflict.REFUSE or not can_ask():
            error.hint = "use --replace to replace it, or --keep to keep both"
            raise
        confirm(f"{error.path} already exists. Replace it?")
        replacing = options._replace(on_conflict=ImportConflict.REPLACE)
        result = workspace.importer.import_choices(session.id, choices, replacing)
    return CommandResult(
        serialize_import_result(result),
        result.findings,
        lines=[block.id for block in result.blocks],
        messages=format_findings(result.findings),
    )


@workspace_command("scan", "scan ~/skills")
@click.argument("folder", default="")
def scan(workspace: Workspace, *, folder: str) -> CommandResult:
    """List the importable skills in FOLDER. The default is ~/.claude/skills.

    Needs SKILLHALL_FOLDER_SCAN=on.
    """
    result = workspace.importer.scan_folder(folder)
    findings = (*result.findings, *(each for row in result.candidates for each in row.findings))
    return CommandResult(
        serialize_folder_scan(result),
        findings,
        rows=[(c.id, c.name, f"≈{c.tokens}", c.description) for c in result.candidates],
        messages=format_findings(findings),
    )


@workspace_command("export", "export Research research.zip")
@click.argument("session")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@flag("--overwrite", help="Replace FILE if it exists.")
def export(
    workspace: Workspace, session: Session, *, file: str | None, overwrite: bool
) -> CommandResult:
    """Export SESSION to the zip file FILE, as a skill folder. 'session open' opens it."""
    name, data = export_session(workspace.contexts.compile(session.id))
    path = file or name
    write_output_file(path, data, overwrite=overwrite)
    return CommandResult({"path": path, "bytes": len(data)}, lines=[path])


@workspace_command("open", "open research.zip")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="Name the session.  [default: the exported name]")
def open_(workspace: Workspace, *, file: Path, name: str | None) -> CommandResult:
    """Create a session from the export in FILE."""
    if not file.is_file():
        raise CommandFailed("not_found", f"file not found: {file.name!r}")
    created = workspace.importer.create_session(file.read_bytes(), file.name, name)
    return CommandResult({"session": serialize_session(created)}, lines=[created.id])


FILE_COMMANDS = (import_, scan, export, open_)
