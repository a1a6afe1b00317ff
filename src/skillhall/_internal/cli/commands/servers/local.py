"""`skillhall local`: manages the skills below `.agents` in a run directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import (
    confirm,
    json_option,
    print_group_help,
    run_directory_option,
)
from skillhall._internal.cli.terminal import (
    is_interactive,
    print_findings,
    print_message,
    print_rows,
    sanitize_line,
)
from skillhall._internal.policy.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.folder_store import FolderStore, ImportReport
    from skillhall._internal.skill_store.input_checks import StoredSkill


@click.group("local", invoke_without_command=True, epilog="Example: skillhall local list --json")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Manage the system and user skills of a run directory. All commands accept --json."""
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall local list")
@run_directory_option
@json_option
def list_skills(*, root: str, as_json: bool) -> int:
    """List the system and user skills."""
    listing = _open_store(root).list()
    if as_json:
        print_json_report(
            "local list", {"skills": _serialize_skills(listing.items)}, listing.findings
        )
        return 0
    print_rows((skill.id, skill.name, skill.description, skill.source) for skill in listing.items)
    _print_problems(listing.findings)
    return 0


@command.command(
    "add", epilog='Example: skillhall local add notes --description "Takes notes when asked to."'
)
@click.argument("id")
@click.option("--name", metavar="TEXT", help="Set the display name.  [default: ID]")
@click.option(
    "--description",
    required=True,
    metavar="TEXT",
    help="Say what the skill does and when to use it.",
)
@click.option("--body", default="", metavar="TEXT", help="Set the instructions; '-' reads stdin.")
@run_directory_option
@json_option
def add(  # noqa: PLR0913 - one parameter for each option
    *,
    id: str,  # noqa: A002 - click names it after the argument
    name: str | None,
    description: str,
    body: str,
    root: str,
    as_json: bool,
) -> int:
    """Create the user skill ID: a folder of that name with a SKILL.md."""
    text = sys.stdin.read() if body == "-" else body
    item = _open_store(root).add(id, id if name is None else name, description, text)
    if as_json:
        print_json_report("local add", {"skill": _serialize_skills([item])[0]})
    else:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    return 0


@command.command("import", epilog="Example: skillhall local import ./pdf-tools --replace")
@click.argument("source")
@click.option("--id", metavar="ID", help="Use this id instead of the folder's name.")
@click.option("--replace", is_flag=True, help="Replace an existing user skill with the same id.")
@click.option("-y", "--yes", is_flag=True, help="Import several skills without confirmation.")
@run_directory_option
@json_option
def import_(  # noqa: PLR0913 - one parameter for each option
    *,
    source: str,
    id: str | None,  # noqa: A002 - click names it after the option
    replace: bool,
    yes: bool,
    root: str,
    as_json: bool,
) -> int:
    """Import the skills in SOURCE.

    SOURCE is a folder, a zip or tar.gz file, or the https URL of one. Everything is checked before
    anything is written.
    """
    from skillhall._internal.wiring.sources import open_source

    can_ask = not as_json and is_interactive()
    bundles = open_source(source, read_settings()).bundles
    if len(bundles) > 1 and not yes:
        confirm(f"Import {format_count(len(bundles), 'skill')}?", can_ask=can_ask)
    report = _import_or_confirm(_open_store(root), bundles, id, replace=replace, can_ask=can_ask)
    if as_json:
        data = {"imported": _serialize_skills(report.imported), "replaced": [*report.replaced]}
        print_json_report("local import", data, report.findings)
        return 0
    for item in report.imported:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    _print_problems(report.findings)
    return 0


@command.command("delete", epilog="Example: skillhall local delete pdf-tools --yes")
@click.argument("id")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--shadowed", is_flag=True, help="Delete a user skill that is shadowed by a system skill."
)
@run_directory_option
@json_option
def delete(
    *,
    id: str,  # noqa: A002 - click names it after the argument
    yes: bool,
    shadowed: bool,
    root: str,
    as_json: bool,
) -> int:
    """Delete the user skill ID with all its files. System skills are read-only.

    A user skill shadowed by a system skill with the same ID needs --shadowed.
    """
    if not yes:
        can_ask = not as_json and is_interactive()
        confirm(f"Delete the user skill {id!r} with all its files?", can_ask=can_ask)
    _open_store(root).delete(id, shadowed=shadowed)
    if as_json:
        print_json_report("local delete", {"deleted": id})
    else:
        print_message(f"deleted {id}")
    return 0


@command.command("share", epilog="Example: skillhall local share")
@click.option("--replace", is_flag=True, help="Replace shared skills with the same ids.")
@run_directory_option
@json_option
def share(*, replace: bool, root: str, as_json: bool) -> int:
    """Copy the user skills to the database, for all servers on it.

    Sharing needs PostgreSQL. Either all skills are copied or none. The folders are kept.
    """
    from contextlib import closing

    from skillhall._internal.skill_store.database_store import copy_to_database
    from skillhall._internal.wiring.database import open_database_services
    from skillhall.errors import ConfigInvalid

    with closing(
        open_database_services(read_settings()._replace(working_directory=root))
    ) as services:
        if services.skill_store is None:
            problem, hint = "sharing skills needs PostgreSQL", "write postgresql://user@host/name"
            raise ConfigInvalid("SKILLHALL_DATABASE_URL", problem, hint)
        report = copy_to_database(_open_store(root), services.skill_store, replace=replace)
    if as_json:
        data = {"shared": _serialize_skills(report.imported), "replaced": [*report.replaced]}
        print_json_report("local share", data, report.findings)
        return 0
    for item in report.imported:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    _print_problems(report.findings)
    return 0


@command.command("setup", epilog="Example: skillhall local setup")
@run_directory_option
@json_option
def setup(*, root: str, as_json: bool) -> int:
    """Install or update the system skills that ship with Skillhall."""
    report = _open_store(root).install_system_skills()
    if as_json:
        data = {
            "written": [*report.written],
            "unchanged": [*report.unchanged],
            "leftAlone": [*report.skipped],
        }
        print_json_report("local setup", data)
        return 0
    for skill_id in report.written:
        sys.stdout.write(f"{sanitize_line(skill_id)}\n")
    for skill_id in report.skipped:
        print_message(
            f"skipped {skill_id}: the folder in .agents/sys.skills is not managed by Skillhall"
        )
    print_message(
        f"{format_count(len(report.written), 'skill')} written, {len(report.unchanged)} up to date"
    )
    return 0


def _open_store(root: str) -> FolderStore:
    """Open the skill store of a run directory and delete leftovers of killed processes."""
    from contextlib import suppress

    from skillhall._internal.skill_store.folder_store import FolderStore

    store = FolderStore(root, follow_links=read_settings().follow_links)
    with suppress(OSError):  # a read-only run directory can still be read
        store.sweep()
    return store


def _import_or_confirm(
    store: FolderStore,
    bundles: Sequence[Bundle],
    skill_id: str | None,
    *,
    replace: bool,
    can_ask: bool,
) -> ImportReport:
    from skillhall.errors import Conflict

    try:
        return store.import_(bundles, skill_id, replace=replace)
    except Conflict as error:
        if not can_ask or replace:
            error.hint = "use --replace, or choose another --id"
            raise
        confirm(f"{sanitize_line(error.path)} already exists. Replace it?", can_ask=can_ask)
    return store.import_(bundles, skill_id, replace=True)


def _serialize_skills(skills: Iterable[StoredSkill]) -> list[dict[str, str]]:
    return [
        {
            "id": skill.id,
            "name": skill.name,
            "description": skill.description,
            "source": skill.source,
        }
        for skill in skills
    ]


def _print_problems(findings: Iterable[JudgedFinding]) -> None:
    print_findings(judged for judged in findings if judged.effect is not Effect.ACCEPT)
