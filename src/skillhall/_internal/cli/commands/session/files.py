"""The commands of `skillhall session` that bring things in and out."""

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
from skillhall._internal.cli.terminal import is_interactive, print_message, print_rows
from skillhall._internal.workspace.serializers import serialize_block, serialize_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.workspace.importer import ImportOptions, ImportResult
    from skillhall._internal.workspace.workspace import Workspace


@click.command("import", epilog="Example: skillhall session import Research acme/skills/pdf")
@click.argument("session")
@click.argument("source")
@click.option("-s", "--skill", "names", multiple=True, metavar="NAME", help="Only this skill.")
@click.option("--zone", metavar="ZONE", help="Where the blocks go; STABLE if not given.")
@click.option("--replace", is_flag=True, help="Replace blocks of the same skills.")
@click.option("--keep", is_flag=True, help="Keep blocks of the same skills beside the others.")
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
    """Import the skills in SOURCE as blocks: a folder, a file, a repository or a web address."""
    from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
    from skillhall._internal.workspace.validation import parse_zone

    if replace and keep:
        raise click.UsageError("--replace goes without --keep", click.get_current_context())
    same = (
        ImportConflict.REPLACE
        if replace
        else ImportConflict.KEEP
        if keep
        else ImportConflict.REFUSE
    )
    wish = ImportOptions(None if zone is None else parse_zone(zone), same, names)
    with open_configured_workspace() as desk:
        found = find_session(desk, session)
        done = _import_or_confirm(
            desk, found.id, source, wish, can_ask=not as_json and is_interactive()
        )
    if as_json:
        skipped = [{"id": one.id, "reasons": one.reasons} for one in done.skipped]
        data = {
            "blocks": [*map(serialize_block, done.blocks)],
            "replaced": [*done.replaced],
            "skipped": skipped,
        }
        print_session_json("import", data, done.findings)
        return 0
    print_ids(block.id for block in done.blocks)
    _print_findings(done.findings)
    return 0


def _import_or_confirm(
    workspace: Workspace, session: str, source: str, options: ImportOptions, *, can_ask: bool
) -> ImportResult:
    """The import; a person is asked before a block is replaced."""
    from skillhall._internal.workspace.importer import ImportConflict
    from skillhall.errors import Conflict

    try:
        return _import_source(workspace, session, source, options)
    except Conflict as error:
        if not can_ask or options.on_conflict is not ImportConflict.REFUSE:
            error.hint = "use --replace, or --keep for both"
            raise
        click.confirm(f"{error.path} is there already. Replace it?", abort=True, err=True)
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
    """List the skills in FOLDER, ~/.claude/skills if it is not given, that can be imported."""
    with open_configured_workspace() as desk:
        found = desk.importer.scan_folder(folder)
    findings = (*found.findings, *(one for row in found.candidates for one in row.findings))
    if as_json:
        rows = [
            {
                "id": one.id,
                "name": one.name,
                "description": one.description,
                "tokens": one.tokens,
                "accepted": not one.reasons,
            }
            for one in found.candidates
        ]
        print_session_json("scan", {"folder": found.folder, "skills": rows}, findings)
        return 0
    print_rows((one.id, one.name, f"≈{one.tokens}", one.description) for one in found.candidates)
    _print_findings(findings)
    return 0


@click.command("export", epilog="Example: skillhall session export Research research.zip")
@click.argument("session")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@json_option
def export(*, session: str, file: Path | None, overwrite: bool, as_json: bool) -> int:
    """Write SESSION as a skill folder into the zip file FILE; 'open' makes it a session again."""
    from skillhall._internal.workspace.export import export_session, write_output_file

    with open_configured_workspace() as desk:
        name, data = export_session(desk.contexts.compile(find_session(desk, session).id))
    goal = file or Path(name)
    write_output_file(str(goal), data, overwrite=overwrite)
    if as_json:
        print_session_json("export", {"path": str(goal), "bytes": len(data)})
    else:
        print_ids([str(goal)])
    return 0


@click.command("open", epilog="Example: skillhall session open research.zip")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="What the session is called.")
@json_option
def open_(*, file: Path, name: str | None, as_json: bool) -> int:
    """Make a session out of the exported one in FILE."""
    if not file.is_file():
        raise CommandFailed("not_found", f"there is no file {file.name!r}")
    with open_configured_workspace() as desk:
        made = desk.importer.create_session(file.read_bytes(), file.name, name)
    if as_json:
        print_session_json("open", {"session": serialize_session(made)})
    else:
        print_ids([made.id])
    return 0


def _print_findings(findings: Iterable[JudgedFinding]) -> None:
    for found, effect in findings:
        print_message(f"{found.path}:{found.line or 1}: {effect}[{found.code}]: {found.message}")


FILE_COMMANDS = (import_, scan, export, open_)
