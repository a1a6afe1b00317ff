"""`skillhall add`: skills from anywhere, into a project, a home, or any folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import counted
from skillhall._internal.cli.errors import CONFLICT, REFUSED
from skillhall._internal.cli.options import follow_links_option, json_option
from skillhall._internal.cli.param_types import CodingAgent
from skillhall._internal.cli.project_options import global_option, open_shelf, print_shelf_rows
from skillhall._internal.cli.terminal import clean, is_attended, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.installer.preflight import AddReport
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.wiring.sources import Opened

EVERY = "*"


class Wish(NamedTuple):
    """Where the skills should go, and how."""

    shelf: Shelf
    directory: str | None
    agents: tuple[str, ...]
    copy: bool
    overwrite: bool


@click.command("add", epilog="Example: skillhall add acme/skills/pdf@v2 --agent claude-code")
@click.argument("source")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    type=CodingAgent(),
    metavar="AGENT",
    help="For this agent too; '*' is all that are used here.",
)
@global_option
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="The folder of skills to add to.  [default: .agents/skills]",
)
@click.option(
    "-s", "--skill", "names", multiple=True, metavar="NAME", help="Only this skill; '*' is all."
)
@click.option(
    "--copy", is_flag=True, help="Copy into each agent's folder, instead of linking to one copy."
)
@click.option(
    "-l", "--list", "is_listing", is_flag=True, help="Show what SOURCE holds, and add nothing."
)
@follow_links_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--overwrite", is_flag=True, help="Replace skills that are there already.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    source: str,
    agents: tuple[str, ...],
    is_user: bool,
    directory: str | None,
    names: tuple[str, ...],
    copy: bool,
    is_listing: bool,
    follow_links: bool,
    yes: bool,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Add the skills in SOURCE.

    \b
    SOURCE is one of
      ./folder, skills.zip, skills.tar.gz
      owner/repo, owner/repo/skill, owner/repo/path@ref, a page of GitHub or GitLab
      github:owner/repo, if there is also a folder owner/repo
      https://host/group/repo.git, git@host:owner/repo.git
      https://host/SKILL.md, https://host/skills.zip
      python:package, for skills that an installed package brings along
      mcp:label, mcp:label/skill, for skills of a server that 'skillhall mcp-servers' knows

    Everything is checked before anything is written. A skill that is there already stays, unless
    --overwrite is given; 'skillhall rollback' brings the old one back. Nothing that comes with a
    skill is ever run.
    """  # noqa: D301 - click wants the character, not a backslash and a letter
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.wiring.sources import open_source, other_meaning

    if directory is not None and (agents or is_user):
        raise click.UsageError(
            "--dir goes without --agent and --global", click.get_current_context()
        )
    shelf = open_shelf(is_user=is_user, follow_links=follow_links)
    wish = Wish(shelf, directory, agents, copy, overwrite)
    with transfer_progress() as progress:
        opened = open_source(source, wish.shelf.settings, progress)
    if opened.stale:
        say(f"warning: {opened.stale}")
    note = other_meaning(source, opened.reference)
    can_ask = not (yes or dry_run or as_json or is_listing) and is_attended()
    bundles = _chosen(opened, names, is_all=yes or dry_run or is_listing, can_ask=can_ask)
    if is_listing:
        _show_listing(opened, bundles, note, as_json=as_json)
        return 0
    if can_ask:
        _confirm(_add(wish, opened, bundles, dry_run=True))
    report = _add(wish, opened, bundles, dry_run=dry_run)
    report.notes += [note] if note else []
    if as_json:
        _print_json(report)
    else:
        _print_text(report, is_plan=dry_run, is_told=can_ask)
    return _exit_code(report)


def _chosen(
    opened: Opened, names: tuple[str, ...], *, is_all: bool, can_ask: bool
) -> Sequence[Bundle]:
    """The bundles that the person wants: by name, all, or marked on a list."""
    from skillhall._internal.installer.preflight import choose, name_of

    if names and EVERY not in names:
        return choose(opened.bundles, names)
    if is_all or EVERY in names or len(opened.bundles) == 1:
        return opened.bundles
    if can_ask:
        return _marked(opened.bundles)
    told = ", ".join(clean(name_of(bundle)) for bundle in opened.bundles)
    raise click.UsageError(
        f"the source holds {counted(len(opened.bundles), 'skill')} ({told}); "
        "name some with --skill, or take all with --yes",
        click.get_current_context(),
    )


def _marked(bundles: Sequence[Bundle]) -> list[Bundle]:
    from skillhall._internal.cli.checklist import Row, choose_rows
    from skillhall._internal.installer.preflight import description_of, name_of

    rows = [Row(f"{name_of(bundle)}  {description_of(bundle)}") for bundle in bundles]
    return [bundles[at] for at in choose_rows("Which skills?", rows)]


def _show_listing(opened: Opened, bundles: Sequence[Bundle], note: str, *, as_json: bool) -> None:
    """Print what the source has, whatever is installed."""
    from skillhall._internal.installer.preflight import (
        AddReport,
        description_of,
        folder_of,
        name_of,
        prepare,
    )

    report = AddReport(notes=[note] if note else [])
    prepare([opened.whole(bundle) for bundle in bundles], "", report)
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        skills = [
            {
                "id": folder_of(one),
                "name": name_of(one),
                "description": description_of(one),
                "path": opened.path_of(one),
                "files": len(one.files),
            }
            for one in bundles
        ]
        data = {"skills": skills, "added": [], "skipped": [], "notes": report.notes}
        print_report("add", data, report.findings)
        return
    _tell_findings(report)
    if note:
        say(f"note: {note}")
    rows = [(clean(name_of(one)), clean(description_of(one))) for one in bundles]
    print_shelf_rows(["skill", "description"], rows)


def _confirm(plan: AddReport) -> None:
    """Show what was found before anything is written, and ask if there is something to think of."""
    _tell_findings(plan)
    if plan.findings and plan.added:
        names = ", ".join(one.id for one in plan.added)
        click.confirm(f"Add {clean(names)} all the same?", abort=True, err=True)


def _add(wish: Wish, opened: Opened, bundles: Sequence[Bundle], *, dry_run: bool) -> AddReport:
    from skillhall._internal.installer.install import install
    from skillhall._internal.installer.preflight import add
    from skillhall._internal.installer.targets import Placement, place_for_agents

    shelf, overwrite = wish.shelf, wish.overwrite
    if wish.directory is None:
        placement = place_for_agents(shelf, wish.agents, copy=wish.copy)
    else:
        path = os.path.join(shelf.root, os.path.expanduser(wish.directory))  # noqa: PTH111, PTH118
        key = shelf.key(os.path.normpath(path))
        if key is None:  # a folder of somebody else's: filled, not kept
            whole = [opened.whole(bundle) for bundle in bundles]
            return add(whole, os.path.normpath(path), overwrite=overwrite, dry_run=dry_run)
        placement = Placement(key)
    return install(shelf, opened, bundles, placement, overwrite=overwrite, dry_run=dry_run)


def _print_json(report: AddReport) -> None:
    from skillhall._internal.cli.json_output import print_report

    added = [
        {"id": one.id, "name": one.name, "path": one.path, "digest": one.digest}
        for one in report.added
    ]
    skipped = [{"id": one.id, "name": one.name, "reason": one.reason} for one in report.skipped]
    data = {"added": added, "skipped": skipped, "notes": report.notes}
    print_report("add", data, report.findings, _error(report))


def _error(report: AddReport) -> dict[str, object] | None:
    if not report.skipped:
        return None
    names = ", ".join(one.id for one in report.skipped)
    if _exit_code(report) == CONFLICT:
        return {"code": "conflict", "message": f"there already: {names}", "hint": "use --overwrite"}
    return {"code": "invalid_skill", "message": f"rejected: {names}"}


def _tell_findings(report: AddReport) -> None:
    for judged in report.findings:
        found = judged.finding
        say(f"{found.path}:{found.line or 1}: {judged.effect}[{found.code}]: {found.message}")


def _print_text(report: AddReport, *, is_plan: bool, is_told: bool) -> None:
    if not is_told:
        _tell_findings(report)
    for addition in report.added:
        sys.stdout.write(f"{clean(addition.path)}\n")
    for note in report.notes:
        say(f"note: {note}")
    for skipped in report.skipped:
        why = "is there already; --overwrite replaces it"
        say(f"not added: {skipped.id} {why if skipped.reason == 'exists' else 'is rejected'}")
    verb = "would be added" if is_plan else "added"
    say(f"{counted(len(report.added), 'skill')} {verb}, {len(report.skipped)} left out")


def _exit_code(report: AddReport) -> int:
    reasons = {one.reason for one in report.skipped}
    if "exists" in reasons:
        return CONFLICT
    return REFUSED if reasons else 0
