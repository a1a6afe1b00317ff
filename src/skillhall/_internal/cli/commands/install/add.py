"""`skillhall add`: adds skills to a project, the home folder or any other folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.options import (
    can_ask,
    confirm,
    dry_run_option,
    flag,
    follow_links_option,
    json_command,
    yes_option,
)
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.project_options import (
    check_revocations,
    complete_coding_agent,
    open_project,
    unsigned_option,
    user_scope_option,
)
from skillhall._internal.cli.terminal import (
    format_count,
    format_findings,
    print_message,
    sanitize_line,
)
from skillhall._internal.installer.agent_folders import InstallTargets, resolve_targets
from skillhall._internal.installer.install import (
    AddReport,
    add_to_folder,
    choose_folder_name,
    install,
    preflight_bundles,
    read_bundle_description,
    read_bundle_name,
    select_bundles,
)
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.wiring.sources import OpenedSource, build_github_hint, open_source

if TYPE_CHECKING:  # imported only for a checklist
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

ALL_SKILLS = "*"
_MAX_ROW_WIDTH = 100  # characters of a row in the checklist


@json_command("add", "skillhall add acme/skills/pdf@v2 --agent claude-code")
@click.argument("source")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    shell_complete=complete_coding_agent,
    metavar="AGENT",
    help="Install for this agent; '*' means every agent detected here. Repeatable.",
)
@user_scope_option
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Add the skills to this folder.  [default: .agents/skills]",
)
@click.option(
    "-s",
    "--skill",
    "names",
    multiple=True,
    metavar="NAME",
    help="Add only this skill; '*' means all. Repeatable.",
)
@flag("--copy", help="Copy the skill into each agent's folder instead of linking to one copy.")
@flag("-l", "--list", "is_listing", help="List the skills in SOURCE and exit.")
@follow_links_option
@yes_option
@flag("--overwrite", help="Replace skills that already exist.")
@unsigned_option
@dry_run_option
def command(
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
    unsigned: bool,
    dry_run: bool,
) -> CommandResult:
    """Add the skills in SOURCE.

    \b
    SOURCE is one of:
      ./folder, skills.zip, skills.tar.gz
      owner/repo, owner/repo/skill, owner/repo/path@ref, or a GitHub or GitLab page
      github:owner/repo, if there is also a folder owner/repo
      https://host/group/repo.git, git@host:owner/repo.git
      https://host/SKILL.md, https://host/skills.zip
      https://host, or the URL of an index.json: a site with an index of skills
      s3://bucket/folder, s3://bucket/skills.zip, in a store with the S3 API
      oci://host/repository:tag, oci:./folder, an OCI image or image layout
      npm:package, npm:@scope/package@1.2.3, for skills in an npm package
      python:package, for skills in an installed Python package
      mcp:label, mcp:label/skill, for skills of a registered MCP server

    Everything is checked before anything is written. Existing skills are replaced only with
    --overwrite; 'skillhall rollback' restores the previous version. Code in a skill is never run.
    """  # noqa: D301 - click needs the backspace character itself
    if directory is not None and (agents or is_user):
        raise click.UsageError("--dir cannot be combined with --agent or --global")
    project = open_project(is_user=is_user, follow_links=follow_links)
    check_revocations(project.settings, [source])
    with transfer_progress() as progress:
        opened = open_source(source, project.settings, progress)
    if opened.stale:
        print_message(f"warning: {opened.stale}")
    note = build_github_hint(source, opened.reference)
    notes = [note] if note else []
    take_all = yes or dry_run or is_listing
    asks = not take_all and can_ask()
    bundles = _choose_bundles(opened, names, take_all=take_all, asks=asks)
    if is_listing:
        return _list_bundles(opened, bundles, notes)
    targets: InstallTargets | str  # in the project, or a folder outside of it
    if directory is None:
        targets = resolve_targets(project, agents, copy=copy)
    else:
        path = os.path.join(project.root, os.path.expanduser(directory))  # noqa: PTH111, PTH118
        key = project.key(os.path.normpath(path))
        targets = os.path.normpath(path) if key is None else InstallTargets(key)

    def add_skills(*, dry_run: bool) -> AddReport:
        if isinstance(targets, InstallTargets):
            return install(
                project,
                opened,
                bundles,
                targets,
                overwrite=overwrite,
                dry_run=dry_run,
                unsigned=unsigned,
            )
        # Skills in a folder outside of the project are not recorded in its lock file.
        loaded = [opened.load_bundle(bundle) for bundle in bundles]
        rules = load_install_rules(opened.reference, project.settings, accepts_broken=unsigned)
        return add_to_folder(loaded, targets, rules, overwrite=overwrite, dry_run=dry_run)

    if asks:
        # Findings are shown before anything is written.
        plan = add_skills(dry_run=True)
        for line in format_findings(plan.findings):
            print_message(line)
        if plan.findings and plan.added:
            confirm(f"Add {', '.join(skill.id for skill in plan.added)} anyway?")
    report = add_skills(dry_run=dry_run)
    report.notes.extend(notes)
    messages = [] if asks else [*format_findings(report.findings)]
    return _to_command_result(report, messages, verb="would add" if dry_run else "added")


def _choose_bundles(
    opened: OpenedSource, names: tuple[str, ...], *, take_all: bool, asks: bool
) -> Sequence[Bundle]:
    """Return the bundles to add: by name, all, or selected interactively.

    Raises: click.UsageError if there are several and the user cannot be asked.
    """
    bundles = opened.bundles
    if names and ALL_SKILLS not in names:
        return select_bundles(bundles, names)
    if take_all or ALL_SKILLS in names or len(bundles) == 1:
        return bundles
    if asks:
        titles = [f"{read_bundle_name(each)}  {read_bundle_description(each)}" for each in bundles]
        return [bundles[number] for number in select_rows("Which skills?", titles)]
    available = ", ".join(sanitize_line(read_bundle_name(bundle)) for bundle in bundles)
    raise click.UsageError(
        f"the source has {format_count(len(bundles), 'skill')} ({available}); "
        "select some with --skill, or all with --yes"
    )


def select_rows(
    question: str,
    titles: Sequence[str],
    key_input: Input | None = None,
    screen_output: Output | None = None,
) -> list[int]:
    """Show a checklist and return the indexes of the selected rows.

    Raises: click.Abort if no row is selected.
    """
    import questionary

    choices = [
        questionary.Choice(sanitize_line(title)[:_MAX_ROW_WIDTH], value=number)
        for number, title in enumerate(titles)
    ]
    instruction = "(space selects, a selects all, enter confirms)"
    prompt = questionary.checkbox(
        question, choices=choices, instruction=instruction, input=key_input, output=screen_output
    )
    selected = prompt.unsafe_ask()
    if not selected:
        raise click.Abort
    return list(selected)


def _list_bundles(
    opened: OpenedSource, bundles: Sequence[Bundle], notes: list[str]
) -> CommandResult:
    """Return the skills of the source, installed or not."""
    report = AddReport(notes=notes)
    preflight_bundles([opened.load_bundle(bundle) for bundle in bundles], "", report)
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
    return CommandResult(
        {"skills": skills, "added": [], "skipped": [], "notes": report.notes},
        report.findings,
        headings=["skill", "description"],
        rows=[(read_bundle_name(each), read_bundle_description(each)) for each in bundles],
        messages=[*format_findings(report.findings), *(f"note: {note}" for note in notes)],
    )


def _to_command_result(report: AddReport, messages: list[str], verb: str) -> CommandResult:
    error = None
    existing = [skill.id for skill in report.skipped if skill.reason == "exists"]
    rejected = [skill.id for skill in report.skipped if skill.reason != "exists"]
    problems = [
        f"{problem}: {', '.join(names)}"
        for problem, names in (("already exists", existing), ("rejected", rejected))
        if names
    ]
    if existing:
        hint = "use --overwrite to replace existing skills"
        error = ErrorInfo("conflict", "; ".join(problems), hint)
    elif rejected:
        error = ErrorInfo("invalid_skill", "; ".join(problems))
    messages += [f"note: {note}" for note in report.notes]
    for skipped in report.skipped:
        exists = "already exists (use --overwrite to replace it)"
        reason = exists if skipped.reason == "exists" else "rejected"
        messages.append(f"skipped {skipped.id}: {reason}")
    count = format_count(len(report.added), "skill")
    messages.append(f"{verb} {count}, skipped {len(report.skipped)}")
    added = [
        {
            "id": skill.id,
            "name": skill.name,
            "path": skill.path,
            "digest": skill.digest,
            "signer": skill.signer,
        }
        for skill in report.added
    ]
    return CommandResult(
        {"added": added, "skipped": [*map(asdict, report.skipped)], "notes": report.notes},
        report.findings,
        error,
        error.exit_code if error else 0,
        lines=[skill.path for skill in report.added],
        messages=messages,
    )
