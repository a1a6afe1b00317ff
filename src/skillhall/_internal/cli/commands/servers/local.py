"""`skillhall local`: the skills below `.agents` in a run directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.options import json_option, print_group_help, run_directory_option
from skillhall._internal.cli.terminal import (
    is_interactive,
    print_message,
    print_rows,
    sanitize_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.folder_store import FolderStore, ImportReport
    from skillhall._internal.skill_store.input_checks import StoredSkill


@click.group("local", invoke_without_command=True, epilog="Example: skillhall local list --json")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the skills of a run directory: its system skills and the user's. All take --json."""
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall local list")
@run_directory_option
@json_option
def list_skills(*, root: str, as_json: bool) -> int:
    """List the system and user skills."""
    listing = _open_store(root).list()
    if as_json:
        _print_json("local list", {"skills": _serialize_skills(listing.items)}, listing.findings)
        return 0
    print_rows((one.id, one.name, one.description, one.source) for one in listing.items)
    _print_findings(listing.findings)
    return 0


@command.command(
    "add", epilog='Example: skillhall local add notes --description "Takes notes when asked to."'
)
@click.argument("id")
@click.option("--name", metavar="TEXT", help="What people call it; ID if not given.")
@click.option("--description", required=True, metavar="TEXT", help="What it does, and when.")
@click.option("--body", default="", metavar="TEXT", help="The instructions; '-' reads stdin.")
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
    """Make the user skill ID: a folder of that name with a SKILL.md."""
    text = sys.stdin.read() if body == "-" else body
    item = _open_store(root).add(id, id if name is None else name, description, text)
    if as_json:
        _print_json("local add", {"skill": _serialize_skills([item])[0]})
    else:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    return 0


@command.command("import", epilog="Example: skillhall local import ./pdf-tools --replace")
@click.argument("source")
@click.option("--id", metavar="ID", help="The id to give it, instead of its folder's name.")
@click.option("--replace", is_flag=True, help="Replace a user skill that has the id already.")
@click.option("-y", "--yes", is_flag=True, help="Take several skills without asking.")
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
    """Take in the skills in SOURCE: a folder, a zip or tar.gz file, or an https address of one.

    Everything is checked before anything is written.
    """
    from skillhall._internal.wiring.sources import open_source

    can_ask = not as_json and is_interactive()
    bundles = open_source(source, read_settings()).bundles
    if len(bundles) > 1 and not yes:
        _confirm(f"Import {format_count(len(bundles), 'skill')}?", can_ask=can_ask)
    report = _import_or_confirm(_open_store(root), bundles, id, replace=replace, can_ask=can_ask)
    if as_json:
        data = {"imported": _serialize_skills(report.imported), "replaced": [*report.replaced]}
        _print_json("local import", data, report.findings)
        return 0
    for item in report.imported:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    _print_findings(report.findings)
    return 0


@command.command("delete", epilog="Example: skillhall local delete pdf-tools --yes")
@click.argument("id")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--shadowed", is_flag=True, help="The user skill that a system skill shadows.")
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
    """Remove the user skill ID with all its files. System skills are read-only.

    A user skill that is shadowed by a system skill with the same ID needs --shadowed.
    """
    if not yes:
        can_ask = not as_json and is_interactive()
        _confirm(f"Delete the user skill {id!r} with all its files?", can_ask=can_ask)
    _open_store(root).delete(id, shadowed=shadowed)
    if as_json:
        _print_json("local delete", {"deleted": id})
    else:
        print_message(f"deleted {id}")
    return 0


@command.command("share", epilog="Example: skillhall local share")
@click.option("--replace", is_flag=True, help="Replace shared skills that have the ids already.")
@run_directory_option
@json_option
def share(*, replace: bool, root: str, as_json: bool) -> int:
    """Copy the user skills into the database, for all servers on one PostgreSQL.

    All of them are copied or none; the folders stay.
    """
    from contextlib import closing

    from skillhall._internal.skill_store.database_store import copy_to_database
    from skillhall._internal.wiring.database import open_database_services
    from skillhall.errors import ConfigInvalid

    with closing(
        open_database_services(read_settings()._replace(working_directory=root))
    ) as shared:
        if shared.skill_store is None:
            problem, hint = "skills are shared by PostgreSQL", "write postgresql://user@host/name"
            raise ConfigInvalid("SKILLHALL_DATABASE_URL", problem, hint)
        report = copy_to_database(_open_store(root), shared.skill_store, replace=replace)
    if as_json:
        data = {"shared": _serialize_skills(report.imported), "replaced": [*report.replaced]}
        _print_json("local share", data, report.findings)
        return 0
    for item in report.imported:
        sys.stdout.write(f"{sanitize_line(item.id)}\n")
    _print_findings(report.findings)
    return 0


@command.command("setup", epilog="Example: skillhall local setup")
@run_directory_option
@json_option
def setup(*, root: str, as_json: bool) -> int:
    """Install the system skills that Skillhall ships, or bring them up to date."""
    report = _open_store(root).install_system_skills()
    if as_json:
        data = {
            "written": [*report.written],
            "unchanged": [*report.unchanged],
            "leftAlone": [*report.skipped],
        }
        _print_json("local setup", data)
        return 0
    for identity in report.written:
        sys.stdout.write(f"{sanitize_line(identity)}\n")
    for identity in report.skipped:
        print_message(f"left alone: {identity} in .agents/sys.skills is somebody else's")
    print_message(
        f"{format_count(len(report.written), 'skill')} written, {len(report.unchanged)} up to date"
    )
    return 0


def _open_store(root: str) -> FolderStore:
    """The skills of the run directory, without what a killed process left there."""
    from contextlib import suppress

    from skillhall._internal.skill_store.folder_store import FolderStore as Skills

    local = Skills(root, follow_links=read_settings().follow_links)
    with suppress(OSError):  # where nothing can be written, reading still works
        local.sweep()
    return local


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
        _confirm(f"{sanitize_line(error.path)} is there already. Replace it?", can_ask=can_ask)
    return store.import_(bundles, skill_id, replace=True)


def _confirm(question: str, *, can_ask: bool) -> None:
    if not can_ask:
        raise click.UsageError(
            f"nobody can be asked here; -y answers yes to: {sanitize_line(question)}",
            click.get_current_context(),
        )
    click.confirm(sanitize_line(question), abort=True, err=True)


def _serialize_skills(items: Iterable[StoredSkill]) -> list[dict[str, str]]:
    return [
        {"id": one.id, "name": one.name, "description": one.description, "source": one.source}
        for one in items
    ]


def _print_json(
    command_name: str, data: Mapping[str, object], findings: Iterable[JudgedFinding] = ()
) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    print_json_report(command_name, data, findings)


def _print_findings(findings: Iterable[JudgedFinding]) -> None:
    from skillhall._internal.policy.effects import Effect

    for found, effect in findings:
        if effect is not Effect.ACCEPT:
            print_message(
                f"{found.path}:{found.line or 1}: {effect}[{found.code}]: {found.message}"
            )
