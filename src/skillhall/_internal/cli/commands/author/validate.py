"""`skillhall validate`: what is wrong with skills, and mending what is safe to mend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.options import profile_option, search_options
from skillhall._internal.cli.terminal import clean, is_coloured, print_lines, print_text, say
from skillhall._internal.policy.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.authoring.fix import FixReport
    from skillhall._internal.authoring.validate import Result, ValidationReport
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings

_FORMATS = ["text", "json", "sarif", "github"]


@click.command("validate", epilog="Example: skillhall validate .agents/skills --format github")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@profile_option("specification")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--fix", "is_fixing", is_flag=True, help="Mend what is safe to mend.")
@click.option("-n", "--dry-run", is_flag=True, help="With --fix: show the changes, write nothing.")
@search_options
@click.option("-v", "--verbose", is_flag=True, help="Show accepted findings too.")
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    paths: tuple[str, ...],
    profile: str,
    form: str,
    as_json: bool,
    is_fixing: bool,
    dry_run: bool,
    depth: int | None,
    follow_links: bool,
    verbose: bool,
) -> int:
    """Check the skills at each PATH: a SKILL.md, a skill's folder, or a folder of skills.

    Without PATH the folders are checked where agents keep skills. The exit code is 1 if anything is
    rejected. --fix quotes values, lower-cases keys, renames skill.md and the like; it never changes
    what a skill says.
    """
    from skillhall._internal.authoring.validate import validate
    from skillhall._internal.cli.progress import scan_progress
    from skillhall._internal.wiring.catalog import profile_named

    if dry_run and not is_fixing:
        raise click.UsageError("--dry-run goes with --fix", click.get_current_context())
    settings = read_settings(follow_links=follow_links)
    chosen = profile_named(profile).searching(depth)
    fixed = _fix(paths, chosen, settings, dry_run=dry_run) if is_fixing else None
    with scan_progress() as progress:
        report = validate(paths, chosen, settings, progress)
    form = "json" if as_json else form
    if form == "json":
        _print_json(report, fixed)
    else:
        shows_diff = dry_run and form == "text"
        if fixed is not None:
            _tell_fixes(fixed, shows_diff=shows_diff)
        if not shows_diff:
            _print(form, report, settings.working_directory, verbose=verbose)
    say(_summary(report))
    return 0 if report.accepted else 1


def _fix(
    paths: tuple[str, ...], profile: Profile, settings: Settings, *, dry_run: bool
) -> FixReport:
    from skillhall._internal.authoring.fix import Writing, fix

    return fix(paths, profile, settings, Writing.SHOW_ONLY if dry_run else Writing.WRITE)


def _tell_fixes(report: FixReport, *, shows_diff: bool) -> None:
    for one in report.fixed:
        if shows_diff:
            print_text(one.diff)
        done = "fixed" if one.written else "not fixed" if one.problem else "would fix"
        say(f"{done} {one.path}: {one.problem or '; '.join(one.changes)}")


def _print(form: str, report: ValidationReport, base: str, *, verbose: bool) -> None:
    from skillhall._internal.cli.commands.author import report_formats as formats
    from skillhall._internal.cli.json_output import print_json
    from skillhall._version import VERSION

    shown = [one for one in report.findings if verbose or one.effect is not Effect.ACCEPT]
    if form == "sarif":
        print_json(formats.as_sarif(formats.judged_results(shown), base, VERSION))
    elif form == "github":
        print_lines(formats.as_github(shown, base))
    else:
        style = formats.coloured if is_coloured(sys.stdout) else formats.plain
        print_lines(formats.as_text(shown, base, style))


def _print_json(report: ValidationReport, fixed: FixReport | None) -> None:
    from skillhall._internal.cli.json_output import print_report

    data: dict[str, object] = {"profile": report.profile}
    data["results"] = (_result_as_json(result) for result in report.results)
    data["summary"] = _counts(report)
    if fixed is not None:
        data["fixed"] = [
            {
                "path": one.path,
                "changes": list(one.changes),
                "diff": one.diff,
                "written": one.written,
                **({"problem": clean(one.problem)} if one.problem else {}),
            }
            for one in fixed.fixed
        ]
    error = None
    if not report.accepted:
        error = {"code": "invalid_skill", "message": _summary(report)}
    print_report("validate", data, report.findings, error)


def _result_as_json(result: Result) -> dict[str, object]:
    from skillhall._internal.cli.json_output import finding_as_json

    name = {"name": result.name} if result.name else {}
    findings = [finding_as_json(one) for one in result.findings]
    return {"path": result.path, **name, "accepted": result.accepted, "findings": findings}


def _counts(report: ValidationReport) -> dict[str, int]:
    accepted = sum(result.accepted for result in report.results)
    return {
        "skills": len(report.results),
        "accepted": accepted,
        "rejected": len(report.results) - accepted,
        "warnings": _count(report.findings, Effect.WARN),
    }


def _count(findings: Iterable[Judged], effect: Effect) -> int:
    return sum(one.effect is effect for one in findings)


def _summary(report: ValidationReport) -> str:
    counts = _counts(report)
    told = f"{counted(counts['skills'], 'skill')}: {counts['accepted']} accepted"
    told += f", {counts['rejected']} rejected" if counts["rejected"] else ""
    told += f", {counted(counts['warnings'], 'warning')}" if counts["warnings"] else ""
    return f"{told} (profile {report.profile!r})"
