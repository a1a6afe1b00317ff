"""`skillhall local`: manages the skills below `.agents` in a run directory."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_database
from skillhall._internal.cli.options import (
    can_ask,
    command_group,
    confirm,
    flag,
    json_command,
    run_directory_option,
    yes_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, format_findings
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill_store.database_store import DatabaseStore, copy_to_database
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.serializers import serialize_skill
from skillhall._internal.skill_store.store import ImportReport, bind_actor
from skillhall._internal.wiring.command_actor import get_actor
from skillhall._internal.wiring.sources import open_source
from skillhall.errors import ConfigInvalid, Conflict

command = command_group(
    "local",
    "Manage the system and user skills of a run directory. All commands accept --json.",
    epilog="Example: skillhall local list --json",
)


@json_command("list", "skillhall local list", group=command)
@run_directory_option
def list_skills(*, root: str) -> CommandResult:
    """List the system and user skills."""
    listing = _open_store(root).list()
    return CommandResult(
        {"skills": [*map(serialize_skill, listing.items)]},
        listing.findings,
        rows=[(each.id, each.name, each.description, each.source) for each in listing.items],
        messages=_format_problems(listing.findings),
    )


@json_command(
    "add", 'skillhall local add notes --description "Takes notes when asked to."', group=command
)
@click.argument("skill_id", metavar="ID")
@click.option("--name", metavar="TEXT", help="Set the display name.  [default: ID]")
@click.option(
    "--description",
    required=True,
    metavar="TEXT",
    help="Describe what the skill does and when to use it.",
)
@click.option("--body", default="", metavar="TEXT", help="Set the instructions; '-' reads stdin.")
@run_directory_option
def add(
    *, skill_id: str, name: str | None, description: str, body: str, root: str
) -> CommandResult:
    """Create the user skill ID: a folder with that name and a SKILL.md."""
    text = sys.stdin.read() if body == "-" else body
    item = _open_store(root).add(skill_id, skill_id if name is None else name, description, text)
    _approve_own(root, item.id)
    return CommandResult({"skill": serialize_skill(item)}, lines=[item.id])


@json_command("import", "skillhall local import ./pdf-tools --replace", group=command)
@click.argument("source")
@click.option("--id", "skill_id", metavar="ID", help="Use this id instead of the folder's name.")
@flag("--replace", help="Replace an existing user skill with the same id.")
@flag("-y", "--yes", help="Import several skills without confirmation.")
@run_directory_option
def import_(
    *, source: str, skill_id: str | None, replace: bool, yes: bool, root: str
) -> CommandResult:
    """Import the skills in SOURCE.

    SOURCE is a folder, an archive, a repository or anything else that 'skillhall add' accepts.
    Everything is checked before anything is written.
    """
    settings = read_settings()
    opened = open_source(source, settings)
    bundles, rules = opened.bundles, load_install_rules(opened.reference, settings)
    if len(bundles) > 1 and not yes:
        confirm(f"Import {format_count(len(bundles), 'skill')}?")
    store = _open_store(root)
    try:
        report = store.import_(bundles, skill_id, replace=replace, rules=rules)
    except Conflict as error:
        if replace or not can_ask():
            error.hint = "use --replace to replace it, or choose another id with --id"
            raise
        confirm(f"{error.path} already exists. Replace it?")
        report = store.import_(bundles, skill_id, replace=True, rules=rules)
    _approve_own(root, *(item.id for item in report.imported))
    return _report_import("imported", report)


@json_command("delete", "skillhall local delete pdf-tools --yes", group=command)
@click.argument("skill_id", metavar="ID")
@yes_option
@flag("--shadowed", help="Delete a user skill that is shadowed by a system skill.")
@run_directory_option
def delete(*, skill_id: str, yes: bool, shadowed: bool, root: str) -> CommandResult:
    """Delete the user skill ID with all its files. System skills are read-only.

    A user skill shadowed by a system skill with the same ID needs --shadowed.
    """
    if not yes:
        confirm(f"Delete the user skill {skill_id!r} with all its files?")
    _open_store(root).delete(skill_id, shadowed=shadowed)
    return CommandResult({"deleted": skill_id}, messages=[f"deleted {skill_id}"])


@json_command("share", "skillhall local share", group=command)
@flag("--replace", help="Replace shared skills with the same ids.")
@run_directory_option
def share(*, replace: bool, root: str) -> CommandResult:
    """Copy the user skills to the database, where all its servers share them.

    Sharing requires PostgreSQL. Either all skills are copied or none. The folders are not deleted.
    """
    with require_database():
        from skillhall._internal.wiring.database import open_database_services

    settings = read_settings()._replace(working_directory=root)
    with closing(open_database_services(settings)) as services:
        if not isinstance(services.skill_store, DatabaseStore):
            problem = "sharing skills requires PostgreSQL"
            hint = "set it to the URL of a PostgreSQL database: postgresql://user@host/name"
            raise ConfigInvalid("SKILLHALL_DATABASE_URL", problem, hint)
        shared = bind_actor(services.skill_store, get_actor())
        report = copy_to_database(_open_store(root), shared, replace=replace)
    return _report_import("shared", report)


@json_command("setup", "skillhall local setup", group=command)
@run_directory_option
def setup(*, root: str) -> CommandResult:
    """Install or update the system skills that ship with Skillhall."""
    report = _open_store(root).install_system_skills()
    messages = [
        f"skipped {skill_id}: the folder in .agents/sys.skills is not managed by Skillhall"
        for skill_id in report.skipped
    ]
    count = format_count(len(report.written), "skill")
    messages.append(f"{count} written, {len(report.unchanged)} up to date")
    data = {
        "written": [*report.written],
        "unchanged": [*report.unchanged],
        "leftAlone": [*report.skipped],
    }
    return CommandResult(data, lines=report.written, messages=messages)


def _open_store(root: str) -> FolderStore:
    """Open the skill store of a run directory; delete leftovers of killed processes."""
    store = FolderStore(root, follow_links=read_settings().follow_links)
    with suppress(OSError):  # a read-only run directory can still be read
        store.sweep()
    return store


def _approve_own(root: str, *ids: str) -> None:
    """Record that these user skills are the user's own."""
    from skillhall._internal.wiring.project_review import approve_own_skill

    settings = read_settings()._replace(working_directory=os.path.abspath(root))  # noqa: PTH100
    for skill_id in ids:
        folder = f"{settings.working_directory}/.agents/skills/{skill_id}"
        approve_own_skill(settings, skill_id, folder, "skillhall local")


def _report_import(key: str, report: ImportReport) -> CommandResult:
    return CommandResult(
        {key: [*map(serialize_skill, report.imported)], "replaced": [*report.replaced]},
        report.findings,
        lines=[item.id for item in report.imported],
        messages=_format_problems(report.findings),
    )


def _format_problems(findings: Iterable[JudgedFinding]) -> Iterator[str]:
    return format_findings(judged for judged in findings if judged.effect is not Effect.ACCEPT)
