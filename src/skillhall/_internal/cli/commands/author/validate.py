"""`skillhall validate`: checks skills and applies safe fixes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.json_output import (
    print_json_report,
    print_json_value,
    serialize_finding,
)
from skillhall._internal.cli.options import format_options, profile_option, search_options
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

    from skillhall._internal.authoring.fix import FixResult
    from skillhall._internal.authoring.validate import ValidationReport, ValidationResult
    from skillhall._internal.policy.effects import JudgedFinding

_FORMATS = ["text", "json", "sarif", "github"]


@click.command("validate", epilog="Example: skillhall validate .agents/skills --format github")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@profile_option("specification")
@format_options(_FORMATS)
@click.option("--fix", "apply_fixes", is_flag=True, help="Fix problems that are safe to fix.")
@click.option("-n", "--dry-run", is_flag=True, help="With --fix, show the changes only.")
@search_options
@click.option("-v", "--verbose", is_flag=True, help="Show accepted findings too.")
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    paths: tuple[str, ...],
    profile: str,
    output_format: str,
    as_json: bool,
    apply_fixes: bool,
    dry_run: bool,
    depth: int | None,
    follow_links: bool,
    verbose: bool,
) -> int:
    """Check the skills at each PATH: a SKILL.md, a skill's folder, or a folder of skills.

    Without PATH, check the default skill folders. The exit code is 1 if a skill is rejected. --fix
    quotes values, lowercases keys, renames skill.md and so on; it never changes the instructions.
    """
    from skillhall._internal.authoring.fix import fix
    from skillhall._internal.authoring.validate import validate
    from skillhall._internal.cli.progress import scan_progress
    from skillhall._internal.wiring.catalog import find_profile

    if dry_run and not apply_fixes:
        raise click.UsageError("--dry-run needs --fix")
    settings = read_settings(follow_links=follow_links)
    chosen = find_profile(profile).with_depth(depth)
    fixed = fix(paths, chosen, settings, dry_run=dry_run) if apply_fixes else None
    with scan_progress() as progress:
        report = validate(paths, chosen, settings, progress)
    output_format = "json" if as_json else output_format
    if output_format == "json":
        _print_json(report, fixed)
    else:
        shows_diff = dry_run and output_format == "text"
        if fixed is not None:
            _print_fixes(fixed, shows_diff=shows_diff)
        if not shows_diff:
            _print_findings(output_format, report, settings.working_directory, verbose=verbose)
    print_message(_format_summary(report))
    return 0 if report.accepted else 1


def _print_fixes(results: tuple[FixResult, ...], *, shows_diff: bool) -> None:
    for result in results:
        if shows_diff:
            print_text(result.diff)
        status = "fixed" if result.written else "not fixed" if result.problem else "would fix"
        print_message(f"{status} {result.path}: {result.problem or '; '.join(result.changes)}")


def _print_findings(
    output_format: str, report: ValidationReport, working_directory: str, *, verbose: bool
) -> None:
    from skillhall._internal.cli.commands.author import report_formats as formats
    from skillhall._version import VERSION

    shown = [each for each in report.findings if verbose or each.effect is not Effect.ACCEPT]
    if output_format == "sarif":
        print_json_value(
            formats.build_sarif(formats.to_sarif_results(shown), working_directory, VERSION)
        )
    elif output_format == "github":
        print_lines(formats.format_github(shown, working_directory))
    else:
        style = formats.style_colored if has_color(sys.stdout) else formats.style_plain
        print_lines(formats.format_text(shown, working_directory, style))


def _print_json(report: ValidationReport, fixed: tuple[FixResult, ...] | None) -> None:
    data: dict[str, object] = {"profile": report.profile}
    data["results"] = (_serialize_result(result) for result in report.results)
    data["summary"] = _count_results(report)
    if fixed is not None:
        data["fixed"] = [
            {
                "path": fix.path,
                "changes": list(fix.changes),
                "diff": fix.diff,
                "written": fix.written,
                **({"problem": sanitize_line(fix.problem)} if fix.problem else {}),
            }
            for fix in fixed
        ]
    error = None
    if not report.accepted:
        error = {"code": "invalid_skill", "message": _format_summary(report)}
    print_json_report("validate", data, report.findings, error)


def _serialize_result(result: ValidationResult) -> dict[str, object]:
    name = {"name": result.name} if result.name else {}
    findings = [serialize_finding(judged) for judged in result.findings]
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
    return sum(judged.effect is effect for judged in findings)


def _format_summary(report: ValidationReport) -> str:
    counts = _count_results(report)
    summary = f"{format_count(counts['skills'], 'skill')}: {counts['accepted']} accepted"
    summary += f", {counts['rejected']} rejected" if counts["rejected"] else ""
    summary += f", {format_count(counts['warnings'], 'warning')}" if counts["warnings"] else ""
    return f"{summary} (profile {report.profile!r})"
