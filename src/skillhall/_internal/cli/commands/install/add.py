"""`skillhall add`: adds skills to a project, the home folder or any other folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import CONFLICT, REJECTED
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import follow_links_option, json_option
from skillhall._internal.cli.param_types import CodingAgentParam
from skillhall._internal.cli.project_options import (
    open_project,
    print_table_or_rows,
    user_scope_option,
)
from skillhall._internal.cli.terminal import (
    is_interactive,
    print_findings,
    print_message,
    sanitize_line,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.installer.install import AddReport
    from skillhall._internal.installer.project import Project
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.wiring.sources import OpenedSource

ALL_SKILLS = "*"


class AddOptions(NamedTuple):
    """Where and how to install the skills."""

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
    help="Install for this agent; '*' means every agent detected here. Repeatable.",
)
@user_scope_option
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Add to this folder of skills.  [default: .agents/skills]",
)
@click.option(
    "-s",
    "--skill",
    "names",
    multiple=True,
    metavar="NAME",
    help="Add only this skill; '*' means all.",
)
@click.option(
    "--copy",
    is_flag=True,
    help="Copy the skill into each agent's folder instead of linking to one copy.",
)
@click.option(
    "-l", "--list", "is_listing", is_flag=True, help="List the skills in SOURCE and exit."
)
@follow_links_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--overwrite", is_flag=True, help="Replace skills that already exist.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be done without doing it.")
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
    SOURCE is one of:
      ./folder, skills.zip, skills.tar.gz
      owner/repo, owner/repo/skill, owner/repo/path@ref, or a GitHub or GitLab page
      github:owner/repo, if a folder owner/repo exists as well
      https://host/group/repo.git, git@host:owner/repo.git
      https://host/SKILL.md, https://host/skills.zip
      python:package, for skills in an installed Python package
      mcp:label, mcp:label/skill, for skills of a registered MCP server

    Everything is checked before anything is written. Existing skills are kept unless you use
    --overwrite; 'skillhall rollback' restores the previous version. Code in a skill is never run.
    """  # noqa: D301 - click needs the backspace character itself
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.wiring.sources import build_github_hint, open_source

    if directory is not None and (agents or is_user):
        raise click.UsageError("--dir cannot be combined with --agent or --global")
    project = open_project(is_user=is_user, follow_links=follow_links)
    options = AddOptions(project, directory, agents, copy, overwrite)
    with transfer_progress() as progress:
        opened = open_source(source, options.project.settings, progress)
    if opened.stale:
        print_message(f"warning: {opened.stale}")
    note = build_github_hint(source, opened.reference)
    can_ask = not (yes or dry_run or as_json or is_listing) and is_interactive()
    bundles = _select_bundles(opened, names, take_all=yes or dry_run or is_listing, can_ask=can_ask)
    if is_listing:
        _print_listing(opened, bundles, note, as_json=as_json)
        return 0
    if can_ask:
        _confirm_findings(_add_skills(options, opened, bundles, dry_run=True))
    report = _add_skills(options, opened, bundles, dry_run=dry_run)
    report.notes += [note] if note else []
    if as_json:
        _print_json(report)
    else:
        _print_text(report, is_dry_run=dry_run, has_printed_findings=can_ask)
    return _compute_exit_code(report)


def _select_bundles(
    opened: OpenedSource, names: tuple[str, ...], *, take_all: bool, can_ask: bool
) -> Sequence[Bundle]:
    """Return the bundles to add: by name, all, or selected interactively."""
    from skillhall._internal.installer.install import read_bundle_name, select_bundles

    if names and ALL_SKILLS not in names:
        return select_bundles(opened.bundles, names)
    if take_all or ALL_SKILLS in names or len(opened.bundles) == 1:
        return opened.bundles
    if can_ask:
        return _ask_for_bundles(opened.bundles)
    available = ", ".join(sanitize_line(read_bundle_name(bundle)) for bundle in opened.bundles)
    raise click.UsageError(
        f"the source has {format_count(len(opened.bundles), 'skill')} ({available}); "
        "select some with --skill, or all with --yes"
    )


def _ask_for_bundles(bundles: Sequence[Bundle]) -> list[Bundle]:
    from skillhall._internal.cli.checklist import ChecklistRow, select_rows
    from skillhall._internal.installer.install import read_bundle_description, read_bundle_name

    rows = [
        ChecklistRow(f"{read_bundle_name(bundle)}  {read_bundle_description(bundle)}")
        for bundle in bundles
    ]
    return [bundles[number] for number in select_rows("Which skills?", rows)]


def _print_listing(
    opened: OpenedSource, bundles: Sequence[Bundle], note: str, *, as_json: bool
) -> None:
    """Print the skills of the source, installed or not."""
    from skillhall._internal.installer.install import (
        AddReport,
        choose_folder_name,
        preflight_bundles,
        read_bundle_description,
        read_bundle_name,
    )

    report = AddReport(notes=[note] if note else [])
    preflight_bundles([opened.load_bundle(bundle) for bundle in bundles], "", report)
    if as_json:
        skills = [
            {
                "id": choose_folder_name(bundle),
                "name": read_bundle_name(bundle),
                "description": read_bundle_description(bundle),
                "path": opened.get_bundle_path(bundle),
                "files": len(bundle.files),
            }
            for bundle in bundles
        ]
        data = {"skills": skills, "added": [], "skipped": [], "notes": report.notes}
        print_json_report("add", data, report.findings)
        return
    print_findings(report.findings)
    if note:
        print_message(f"note: {note}")
    rows = [
        (sanitize_line(read_bundle_name(bundle)), sanitize_line(read_bundle_description(bundle)))
        for bundle in bundles
    ]
    print_table_or_rows(["skill", "description"], rows)


def _confirm_findings(plan: AddReport) -> None:
    """Print the findings before anything is written; if there are any, ask to continue."""
    print_findings(plan.findings)
    if plan.findings and plan.added:
        names = ", ".join(skill.id for skill in plan.added)
        click.confirm(f"Add {sanitize_line(names)} anyway?", abort=True, err=True)


def _add_skills(
    options: AddOptions, opened: OpenedSource, bundles: Sequence[Bundle], *, dry_run: bool
) -> AddReport:
    from skillhall._internal.installer.agent_folders import InstallTargets, resolve_targets
    from skillhall._internal.installer.install import add_to_folder, install

    project, overwrite = options.project, options.overwrite
    if options.directory is None:
        targets = resolve_targets(project, options.agents, copy=options.copy)
    else:
        path = os.path.join(project.root, os.path.expanduser(options.directory))  # noqa: PTH111, PTH118
        key = project.key(os.path.normpath(path))
        if key is None:  # a folder outside of the project: not in its lock file
            loaded = [opened.load_bundle(bundle) for bundle in bundles]
            return add_to_folder(
                loaded, os.path.normpath(path), overwrite=overwrite, dry_run=dry_run
            )
        targets = InstallTargets(key)
    return install(project, opened, bundles, targets, overwrite=overwrite, dry_run=dry_run)


def _print_json(report: AddReport) -> None:
    added = [
        {"id": skill.id, "name": skill.name, "path": skill.path, "digest": skill.digest}
        for skill in report.added
    ]
    skipped = [
        {"id": skill.id, "name": skill.name, "reason": skill.reason} for skill in report.skipped
    ]
    data = {"added": added, "skipped": skipped, "notes": report.notes}
    print_json_report("add", data, report.findings, _build_error(report))


def _build_error(report: AddReport) -> dict[str, object] | None:
    if not report.skipped:
        return None
    names = ", ".join(skill.id for skill in report.skipped)
    if _compute_exit_code(report) == CONFLICT:
        message = f"already exists: {names}"
        return {"code": "conflict", "message": message, "hint": "use --overwrite"}
    return {"code": "invalid_skill", "message": f"rejected: {names}"}


def _print_text(report: AddReport, *, is_dry_run: bool, has_printed_findings: bool) -> None:
    if not has_printed_findings:
        print_findings(report.findings)
    for addition in report.added:
        sys.stdout.write(f"{sanitize_line(addition.path)}\n")
    for note in report.notes:
        print_message(f"note: {note}")
    for skipped in report.skipped:
        exists = "already exists (use --overwrite to replace it)"
        reason = exists if skipped.reason == "exists" else "rejected"
        print_message(f"skipped {skipped.id}: {reason}")
    verb = "would add" if is_dry_run else "added"
    count = format_count(len(report.added), "skill")
    print_message(f"{verb} {count}, skipped {len(report.skipped)}")


def _compute_exit_code(report: AddReport) -> int:
    reasons = {skill.reason for skill in report.skipped}
    if "exists" in reasons:
        return CONFLICT
    return REJECTED if reasons else 0
