"""The commands of `skillhall session` that bring things in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.commands.session.lookup import (
    find_session,
    opened_workspace,
    print_ids,
    print_json,
)
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import is_attended, print_rows, say
from skillhall._internal.workspace.serializers import block_data, session_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.workspace.importer import Imported, Wish
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
    from skillhall._internal.workspace.importer import SameName, Wish
    from skillhall._internal.workspace.validation import checked_zone

    if replace and keep:
        raise click.UsageError("--replace goes without --keep", click.get_current_context())
    same = SameName.REPLACE if replace else SameName.KEEP if keep else SameName.REFUSE
    wish = Wish(None if zone is None else checked_zone(zone), same, names)
    with opened_workspace() as desk:
        found = find_session(desk, session)
        done = _imported(desk, found.id, source, wish, can_ask=not as_json and is_attended())
    if as_json:
        skipped = [{"id": one.id, "reasons": one.reasons} for one in done.skipped]
        data = {
            "blocks": [*map(block_data, done.blocks)],
            "replaced": [*done.replaced],
            "skipped": skipped,
        }
        print_json("import", data, done.findings)
        return 0
    print_ids(block.id for block in done.blocks)
    _tell(done.findings)
    return 0


def _imported(desk: Workspace, session: str, source: str, wish: Wish, *, can_ask: bool) -> Imported:
    """The import; a person is asked before a block is replaced."""
    from skillhall._internal.workspace.importer import SameName
    from skillhall.errors import Conflict

    try:
        return _import(desk, session, source, wish)
    except Conflict as error:
        if not can_ask or wish.same is not SameName.REFUSE:
            error.hint = "use --replace, or --keep for both"
            raise
        click.confirm(f"{error.path} is there already. Replace it?", abort=True, err=True)
    return _import(desk, session, source, wish._replace(same=SameName.REPLACE))


def _import(desk: Workspace, session: str, source: str, wish: Wish) -> Imported:
    from skillhall._internal.workspace.skill_blocks import LOCAL

    path = Path(source)
    if path.suffix.lower() == ".md" and path.is_file():
        return desk.imports.import_upload(session, path.read_bytes(), path.name, wish, LOCAL)
    return desk.imports.import_source(session, source, wish)


@click.command("scan", epilog="Example: SKILLHALL_FOLDER_SCAN=on skillhall session scan")
@click.argument("folder", default="")
@json_option
def scan(*, folder: str, as_json: bool) -> int:
    """List the skills in FOLDER, ~/.claude/skills if it is not given, that can be imported."""
    with opened_workspace() as desk:
        found = desk.imports.look_folder(folder)
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
        print_json("scan", {"folder": found.folder, "skills": rows}, findings)
        return 0
    print_rows((one.id, one.name, f"≈{one.tokens}", one.description) for one in found.candidates)
    _tell(findings)
    return 0


@click.command("export", epilog="Example: skillhall session export Research research.zip")
@click.argument("session")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@json_option
def export(*, session: str, file: Path | None, overwrite: bool, as_json: bool) -> int:
    """Write SESSION as a skill folder into the zip file FILE; 'open' makes it a session again."""
    from skillhall._internal.workspace.export import export_session, write_file

    with opened_workspace() as desk:
        name, data = export_session(desk.contexts.compile(find_session(desk, session).id))
    goal = file or Path(name)
    write_file(str(goal), data, overwrite=overwrite)
    if as_json:
        print_json("export", {"path": str(goal), "bytes": len(data)})
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
    with opened_workspace() as desk:
        made = desk.imports.open_session(file.read_bytes(), file.name, name)
    if as_json:
        print_json("open", {"session": session_data(made)})
    else:
        print_ids([made.id])
    return 0


def _tell(findings: Iterable[Judged]) -> None:
    for found, effect in findings:
        say(f"{found.path}:{found.line or 1}: {effect}[{found.code}]: {found.message}")


FILE_COMMANDS = (import_, scan, export, open_)
