"""The `skillhall session` commands that import and export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.commands.session.lookup import (
    find_session,
    open_configured_workspace,
    print_ids,
    print_session_json,
)
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import is_interactive, print_findings, print_rows
from skillhall._internal.workspace.serializers import serialize_block, serialize_session

if TYPE_CHECKING:
    from skillhall._internal.workspace.importer import ImportOptions, ImportResult
    from skillhall._internal.workspace.workspace import Workspace


@click.command("import", epilog="Example: skillhall session import Research acme/skills/pdf")
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
@click.option("--replace", is_flag=True, help="Replace blocks of the same skills.")
@click.option(
    "--keep", is_flag=True, help="Keep existing blocks of the same skills and add new ones."
)
@json_option
def import_(  # noqa: PLR0913 - one parameter for each option
    *,
    session: str,
    source: str,
    names: tuple[str, ...],
    zone: str | None,
    replace: bool,
    keep: bool,
    as_json: bool,
) -> int:
    """Import the skills in SOURCE as blocks. SOURCE is a folder, file, repository or URL."""
    from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
    from skillhall._internal.workspace.validation import parse_zone

    if replace and keep:
        raise click.UsageError("--replace cannot be combined with --keep")
    on_conflict = ImportConflict.KEEP if keep else ImportConflict.REFUSE
    if replace:
        on_conflict = ImportConflict.REPLACE
    options = ImportOptions(None if zone is None else parse_zone(zone), on_conflict, names)
    with open_configured_workspace() as workspace:
        target = find_session(workspace, session)
        result = _import_or_confirm(
            workspace, target.id, source, options, can_ask=not as_json and is_interactive()
        )
    if as_json:
        skipped = [{"id": skill.id, "reasons": skill.reasons} for skill in result.skipped]
        data = {
            "blocks": [*map(serialize_block, result.blocks)],
            "replaced": [*result.replaced],
            "skipped": skipped,
        }
        print_session_json("import", data, result.findings)
        return 0
    print_ids(block.id for block in result.blocks)
    print_findings(result.findings)
    return 0


def _import_or_confirm(
    workspace: Workspace, session: str, source: str, options: ImportOptions, *, can_ask: bool
) -> ImportResult:
    """Import a source; on a terminal, ask before replacing a block."""
    from skillhall._internal.workspace.importer import ImportConflict
    from skillhall.errors import Conflict

    try:
        return _import_source(workspace, session, source, options)
    except Conflict as error:
        if not can_ask or options.on_conflict is not ImportConflict.REFUSE:
            error.hint = "use --replace, or --keep for both"
            raise
        click.confirm(f"{error.path} already exists. Replace it?", abort=True, err=True)
    return _import_source(
        workspace, session, source, options._replace(on_conflict=ImportConflict.REPLACE)
    )


def _import_source(
    workspace: Workspace, session: str, source: str, options: ImportOptions
) -> ImportResult:
    from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE

    path = Path(source)
    if path.suffix.lower() == ".md" and path.is_file():
        return workspace.importer.import_upload(
            session, path.read_bytes(), path.name, options, LOCAL_SOURCE
        )
    return workspace.importer.import_source(session, source, options)


@click.command("scan", epilog="Example: SKILLHALL_FOLDER_SCAN=on skillhall session scan")
@click.argument("folder", default="")
@json_option
def scan(*, folder: str, as_json: bool) -> int:
    """List the importable skills in FOLDER. The default is ~/.claude/skills."""
    with open_configured_workspace() as workspace:
        result = workspace.importer.scan_folder(folder)
    findings = (*result.findings, *(each for row in result.candidates for each in row.findings))
    if as_json:
        rows = [
            {
                "id": candidate.id,
                "name": candidate.name,
                "description": candidate.description,
                "tokens": candidate.tokens,
                "accepted": not candidate.reasons,
            }
            for candidate in result.candidates
        ]
        print_session_json("scan", {"folder": result.folder, "skills": rows}, findings)
        return 0
    print_rows(
        (candidate.id, candidate.name, f"≈{candidate.tokens}", candidate.description)
        for candidate in result.candidates
    )
    print_findings(findings)
    return 0


@click.command("export", epilog="Example: skillhall session export Research research.zip")
@click.argument("session")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@json_option
def export(*, session: str, file: Path | None, overwrite: bool, as_json: bool) -> int:
    """Export SESSION as a skill folder in the zip file FILE. 'open' imports it again."""
    from skillhall._internal.workspace.export import export_session, write_output_file

    with open_configured_workspace() as workspace:
        name, data = export_session(workspace.contexts.compile(find_session(workspace, session).id))
    path = file or Path(name)
    write_output_file(str(path), data, overwrite=overwrite)
    if as_json:
        print_session_json("export", {"path": str(path), "bytes": len(data)})
    else:
        print_ids([str(path)])
    return 0


@click.command("open", epilog="Example: skillhall session open research.zip")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="Name the session.  [default: the exported name]")
@json_option
def open_(*, file: Path, name: str | None, as_json: bool) -> int:
    """Create a session from the export in FILE."""
    if not file.is_file():
        raise CommandFailed("not_found", f"file not found: {file.name!r}")
    with open_configured_workspace() as workspace:
        created = workspace.importer.create_session(file.read_bytes(), file.name, name)
    if as_json:
        print_session_json("open", {"session": serialize_session(created)})
    else:
        print_ids([created.id])
    return 0


FILE_COMMANDS = (import_, scan, export, open_)
