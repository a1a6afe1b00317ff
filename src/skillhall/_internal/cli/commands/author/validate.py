"""`skillhall validate`: what is wrong with skills, and mending what is safe to mend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.options import profile_option, search_options
from skillhall._internal.cli.terminal import (
    has_color,
    print_lines,
    print_message,
    print_text,
    sanitize_line,
)
from skillhall._internal.policy.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.authoring.fix import FixReport
    from skillhall._internal.authoring.validate import ValidationReport, ValidationResult
    from skillhall._internal.policy.effects import JudgedFinding
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
    from skillhall._internal.wiring.catalog import find_profile

    if dry_run and not is_fixing:
        raise click.UsageError("--dry-run goes with --fix", click.get_current_context())
    settings = read_settings(follow_links=follow_links)
    chosen = find_profile(profile).with_depth(depth)
    fixed = _fix_skills(paths, chosen, settings, dry_run=dry_run) if is_fixing else None
    with scan_progress() as progress:
        report = validate(paths, chosen, settings, progress)
    form = "json" if as_json else form
    if form == "json":
        _print_json(report, fixed)
    else:
        shows_diff = dry_run and form == "text"
        if fixed is not None:
            _print_fixes(fixed, shows_diff=shows_diff)
        if not shows_diff:
            _print_findings(form, report, settings.working_directory, verbose=verbose)
    print_message(_format_summary(report))
    return 0 if report.accepted else 1


def _fix_skills(
    paths: tuple[str, ...], profile: Profile, settings: Settings, *, dry_run: bool
) -> FixReport:
    from skillhall._internal.authoring.fix import WriteMode, fix

    return fix(paths, profile, settings, WriteMode.DRY_RUN if dry_run else WriteMode.WRITE)


def _print_fixes(report: FixReport, *, shows_diff: bool) -> None:
    for one in report.results:
        if shows_diff:
            print_text(one.diff)
        done = "fixed" if one.written else "not fixed" if one.problem else "would fix"
        print_message(f"{done} {one.path}: {one.problem or '; '.join(one.changes)}")


def _print_findings(
    output_format: str, report: ValidationReport, working_directory: str, *, verbose: bool
) -> None:
    from skillhall._internal.cli.commands.author import report_formats as formats
    from skillhall._internal.cli.json_output import print_json_value
    from skillhall._version import VERSION

    shown = [one for one in report.findings if verbose or one.effect is not Effect.ACCEPT]
    if output_format == "sarif":
        print_json_value(
            formats.build_sarif(formats.to_sarif_results(shown), working_directory, VERSION)
        )
    elif output_format == "github":
        print_lines(formats.format_github(shown, working_directory))
    else:
        style = formats.style_colored if has_color(sys.stdout) else formats.style_plain
        print_lines(formats.format_text(shown, working_directory, style))


def _print_json(report: ValidationReport, fixed: FixReport | None) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    data: dict[str, object] = {"profile": report.profile}
    data["results"] = (_serialize_result(result) for result in report.results)
    data["summary"] = _count_results(report)
    if fixed is not None:
        data["fixed"] = [
            {
                "path": one.path,
                "changes": list(one.changes),
                "diff": one.diff,
                "written": one.written,
                **({"problem": sanitize_line(one.problem)} if one.problem else {}),
            }
            for one in fixed.results
        ]
    error = None
    if not report.accepted:
        error = {"code": "invalid_skill", "message": _format_summary(report)}
    print_json_report("validate", data, report.findings, error)


def _serialize_result(result: ValidationResult) -> dict[str, object]:
    from skillhall._internal.cli.json_output import serialize_finding

    name = {"name": result.name} if result.name else {}
    findings = [serialize_finding(one) for one in result.findings]
    return {"path": result.path, **name, "accepted": result.accepted, "findings": findings}


def _count_results(report: ValidationReport) -> dict[str, int]:
    accepted = sum(result.accepted for result in report.results)
    return {
        "skills": len(report.results),
        "accepted": accepted,
        "rejected": len(report.results) - accepted,
        "warnings": _count_effect(report.findings, Effect.WARN),
    }


def _count_effect(findings: Iterable[JudgedFinding], effect: Effect) -> int:
    return sum(one.effect is effect for one in findings)


def _format_summary(report: ValidationReport) -> str:
    counts = _count_results(report)
    told = f"{format_count(counts['skills'], 'skill')}: {counts['accepted']} accepted"
    told += f", {counts['rejected']} rejected" if counts["rejected"] else ""
    told += f", {format_count(counts['warnings'], 'warning')}" if counts["warnings"] else ""
    return f"{told} (profile {report.profile!r})"
