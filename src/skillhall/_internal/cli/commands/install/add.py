"""`skillhall add`: skills from anywhere, into a project, a home, or any folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import CONFLICT, REJECTED
from skillhall._internal.cli.options import follow_links_option, json_option
from skillhall._internal.cli.param_types import CodingAgentParam
from skillhall._internal.cli.project_options import (
    open_project,
    print_table_or_rows,
    user_scope_option,
)
from skillhall._internal.cli.terminal import is_interactive, print_message, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.installer.preflight import AddReport
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.wiring.sources import OpenedSource

ALL_SKILLS = "*"


class AddOptions(NamedTuple):
    """Where the skills should go, and how."""

    project: Project
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
    type=CodingAgentParam(),
    metavar="AGENT",
    help="For this agent too; '*' is all that are used here.",
)
@user_scope_option
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
    from skillhall._internal.wiring.sources import build_github_hint, open_source

    if directory is not None and (agents or is_user):
        raise click.UsageError(
            "--dir goes without --agent and --global", click.get_current_context()
        )
    shelf = open_project(is_user=is_user, follow_links=follow_links)
    wish = AddOptions(shelf, directory, agents, copy, overwrite)
    with transfer_progress() as progress:
        opened = open_source(source, wish.project.settings, progress)
    if opened.stale:
        print_message(f"warning: {opened.stale}")
    note = build_github_hint(source, opened.reference)
    can_ask = not (yes or dry_run or as_json or is_listing) and is_interactive()
    bundles = _select_bundles(opened, names, take_all=yes or dry_run or is_listing, can_ask=can_ask)
    if is_listing:
        _print_listing(opened, bundles, note, as_json=as_json)
        return 0
    if can_ask:
        _confirm_findings(_add_skills(wish, opened, bundles, dry_run=True))
    report = _add_skills(wish, opened, bundles, dry_run=dry_run)
    report.notes += [note] if note else []
    if as_json:
        _print_json(report)
    else:
        _print_text(report, is_dry_run=dry_run, has_printed_findings=can_ask)
    return _compute_exit_code(report)


def _select_bundles(
    opened: OpenedSource, names: tuple[str, ...], *, take_all: bool, can_ask: bool
) -> Sequence[Bundle]:
    """The bundles that the person wants: by name, all, or marked on a list."""
    from skillhall._internal.installer.preflight import read_bundle_name, select_bundles

    if names and ALL_SKILLS not in names:
        return select_bundles(opened.bundles, names)
    if take_all or ALL_SKILLS in names or len(opened.bundles) == 1:
        return opened.bundles
    if can_ask:
        return _ask_for_bundles(opened.bundles)
    told = ", ".join(sanitize_line(read_bundle_name(bundle)) for bundle in opened.bundles)
    raise click.UsageError(
        f"the source holds {format_count(len(opened.bundles), 'skill')} ({told}); "
        "name some with --skill, or take all with --yes",
        click.get_current_context(),
    )


def _ask_for_bundles(bundles: Sequence[Bundle]) -> list[Bundle]:
    from skillhall._internal.cli.checklist import ChecklistRow, select_rows
    from skillhall._internal.installer.preflight import read_bundle_description, read_bundle_name

    rows = [
        ChecklistRow(f"{read_bundle_name(bundle)}  {read_bundle_description(bundle)}")
        for bundle in bundles
    ]
    return [bundles[at] for at in select_rows("Which skills?", rows)]


def _print_listing(
    opened: OpenedSource, bundles: Sequence[Bundle], note: str, *, as_json: bool
) -> None:
    """Print what the source has, whatever is installed."""
    from skillhall._internal.installer.preflight import (
        AddReport,
        choose_folder_name,
        preflight_bundles,
        read_bundle_description,
        read_bundle_name,
    )

    report = AddReport(notes=[note] if note else [])
    preflight_bundles([opened.load_bundle(bundle) for bundle in bundles], "", report)
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        skills = [
            {
                "id": choose_folder_name(one),
                "name": read_bundle_name(one),
                "description": read_bundle_description(one),
                "path": opened.get_bundle_path(one),
                "files": len(one.files),
            }
            for one in bundles
        ]
        data = {"skills": skills, "added": [], "skipped": [], "notes": report.notes}
        print_json_report("add", data, report.findings)
        return
    _print_findings(report)
    if note:
        print_message(f"note: {note}")
    rows = [
        (sanitize_line(read_bundle_name(one)), sanitize_line(read_bundle_description(one)))
        for one in bundles
    ]
    print_table_or_rows(["skill", "description"], rows)


def _confirm_findings(plan: AddReport) -> None:
    """Show what was found before anything is written, and ask if there is something to think of."""
    _print_findings(plan)
    if plan.findings and plan.added:
        names = ", ".join(one.id for one in plan.added)
        click.confirm(f"Add {sanitize_line(names)} all the same?", abort=True, err=True)


def _add_skills(
    options: AddOptions, opened: OpenedSource, bundles: Sequence[Bundle], *, dry_run: bool
) -> AddReport:
    from skillhall._internal.installer.install import install
    from skillhall._internal.installer.preflight import add_to_folder
    from skillhall._internal.installer.targets import InstallTargets, resolve_targets

    shelf, overwrite = options.project, options.overwrite
    if options.directory is None:
        placement = resolve_targets(shelf, options.agents, copy=options.copy)
    else:
        path = os.path.join(shelf.root, os.path.expanduser(options.directory))  # noqa: PTH111, PTH118
        key = shelf.key(os.path.normpath(path))
        if key is None:  # a folder of somebody else's: filled, not kept
            whole = [opened.load_bundle(bundle) for bundle in bundles]
            return add_to_folder(
                whole, os.path.normpath(path), overwrite=overwrite, dry_run=dry_run
            )
        placement = InstallTargets(key)
    return install(shelf, opened, bundles, placement, overwrite=overwrite, dry_run=dry_run)


def _print_json(report: AddReport) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    added = [
        {"id": one.id, "name": one.name, "path": one.path, "digest": one.digest}
        for one in report.added
    ]
    skipped = [{"id": one.id, "name": one.name, "reason": one.reason} for one in report.skipped]
    data = {"added": added, "skipped": skipped, "notes": report.notes}
    print_json_report("add", data, report.findings, _build_error(report))


def _build_error(report: AddReport) -> dict[str, object] | None:
    if not report.skipped:
        return None
    names = ", ".join(one.id for one in report.skipped)
    if _compute_exit_code(report) == CONFLICT:
        return {"code": "conflict", "message": f"there already: {names}", "hint": "use --overwrite"}
    return {"code": "invalid_skill", "message": f"rejected: {names}"}


def _print_findings(report: AddReport) -> None:
    for judged in report.findings:
        found = judged.finding
        print_message(
            f"{found.path}:{found.line or 1}: {judged.effect}[{found.code}]: {found.message}"
        )


def _print_text(report: AddReport, *, is_dry_run: bool, has_printed_findings: bool) -> None:
    if not has_printed_findings:
        _print_findings(report)
    for addition in report.added:
        sys.stdout.write(f"{sanitize_line(addition.path)}\n")
    for note in report.notes:
        print_message(f"note: {note}")
    for skipped in report.skipped:
        why = "is there already; --overwrite replaces it"
        print_message(
            f"not added: {skipped.id} {why if skipped.reason == 'exists' else 'is rejected'}"
        )
    verb = "would be added" if is_dry_run else "added"
    print_message(
        f"{format_count(len(report.added), 'skill')} {verb}, {len(report.skipped)} left out"
    )


def _compute_exit_code(report: AddReport) -> int:
    reasons = {one.reason for one in report.skipped}
    if "exists" in reasons:
        return CONFLICT
    return REJECTED if reasons else 0
