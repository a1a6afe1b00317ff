"""`skillhall add`: skills from a folder, an archive or a web address."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from skillhall.surfaces.cli.errors import CONFLICT, REFUSED
from skillhall.surfaces.cli.loading import counted, read_settings
from skillhall.surfaces.cli.options import json_option
from skillhall.surfaces.cli.terminal import clean, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall.library.adding import AddReport
    from skillhall.skill.bundle import Bundle


@click.command("add", epilog="Example: skillhall add skills.zip --dir .claude/skills")
@click.argument("source")
@click.option(
    "--dir",
    "directory",
    default=".agents/skills",
    show_default=True,
    metavar="DIR",
    help="The folder of skills to add to.",
)
@click.option("-s", "--skill", "names", multiple=True, metavar="NAME", help="Only this skill.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--overwrite", is_flag=True, help="Replace skills that are there already.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    source: str,
    directory: str,
    names: tuple[str, ...],
    yes: bool,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    form: str,
) -> int:
    """Add the skills in SOURCE: a folder, a zip or tar.gz file, or an https address of one.

    Everything is checked before anything is written. A skill that is there already stays, unless
    --overwrite is given. Nothing that comes with a skill is ever run.
    """
    from skillhall.library.adding import add, choose
    from skillhall.library.intake import open_source

    is_json = as_json or form == "json"
    settings = read_settings()
    bundles = choose(open_source(source, settings), names)
    if not (yes or dry_run or names):
        _confirm(bundles, can_ask=not is_json and is_terminal(sys.stdin))
    target = os.path.join(settings.working_directory, os.path.expanduser(directory))  # noqa: PTH111, PTH118
    report = add(bundles, os.path.normpath(target), overwrite=overwrite, dry_run=dry_run)
    if is_json:
        _print_json(report)
    else:
        _print_text(report, dry_run=dry_run)
    return _exit_code(report)


def _confirm(bundles: Sequence[Bundle], *, can_ask: bool) -> None:
    from skillhall.library.adding import name_of

    if len(bundles) == 1:
        return
    names = ", ".join(clean(name_of(bundle)) for bundle in bundles)
    if not can_ask:
        raise click.UsageError(
            f"the source holds {counted(len(bundles), 'skill')} ({names}); "
            "name some with --skill, or take all with --yes",
            click.get_current_context(),
        )
    click.confirm(f"Add {counted(len(bundles), 'skill')} ({names})?", abort=True, err=True)


def _print_json(report: AddReport) -> None:
    from skillhall.surfaces.cli.output import print_report

    added = [
        {"id": one.id, "name": one.name, "path": one.path, "digest": one.digest}
        for one in report.added
    ]
    skipped = [{"id": one.id, "name": one.name, "reason": one.reason} for one in report.skipped]
    error = _error(report)
    print_report("add", {"added": added, "skipped": skipped}, report.findings, error)


def _error(report: AddReport) -> dict[str, object] | None:
    if not report.skipped:
        return None
    names = ", ".join(one.id for one in report.skipped)
    if _exit_code(report) == CONFLICT:
        return {"code": "conflict", "message": f"there already: {names}", "hint": "use --overwrite"}
    return {"code": "invalid_skill", "message": f"rejected: {names}"}


def _print_text(report: AddReport, *, dry_run: bool) -> None:
    for judged in report.findings:
        found = judged.finding
        say(f"{found.path}:{found.line or 1}: {judged.effect}[{found.code}]: {found.message}")
    for addition in report.added:
        sys.stdout.write(f"{clean(addition.path)}\n")
    for skipped in report.skipped:
        why = "is there already; --overwrite replaces it"
        say(f"not added: {skipped.id} {why if skipped.reason == 'exists' else 'is rejected'}")
    verb = "would be added" if dry_run else "added"
    say(f"{counted(len(report.added), 'skill')} {verb}, {len(report.skipped)} left out")


def _exit_code(report: AddReport) -> int:
    reasons = {one.reason for one in report.skipped}
    if "exists" in reasons:
        return CONFLICT
    return REFUSED if reasons else 0
