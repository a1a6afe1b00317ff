"""`skillhall validate`: checks skills and applies safe fixes."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING

import click

from skillhall._internal.authoring.validate import ValidationReport, ValidationResult, validate
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.author.report_formats import (
    build_sarif,
    format_github,
    format_text,
    to_sarif_results,
)
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.json_output import EncodedItems, encode_findings, print_json_value
from skillhall._internal.cli.options import (
    depth_option,
    flag,
    follow_links_option,
    json_command,
    profile_option,
)
from skillhall._internal.cli.parallel_map import skill_checking
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import (
    format_count,
    has_color,
    print_lines,
    print_message,
    print_text,
    sanitize_line,
)
from skillhall._internal.policy.effects import Effect
from skillhall._internal.wiring.catalog import find_profile

if TYPE_CHECKING:  # imported only for --fix
    from skillhall._internal.authoring.fix import FixResult

_FORMATS = ["text", "json", "sarif", "github"]


@json_command("validate", "skillhall validate .agents/skills --format github", formats=_FORMATS)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@profile_option("specification")
@flag("--fix", "apply_fixes", help="Fix problems that are safe to fix.")
@flag("-n", "--dry-run", help="With --fix, show the changes only.")
@depth_option
@follow_links_option
@flag("-v", "--verbose", help="Show accepted findings too.")
def command(
    *,
    paths: tuple[str, ...],
    profile: str,
    output_format: str,
    apply_fixes: bool,
    dry_run: bool,
    depth: int | None,
    follow_links: bool,
    verbose: bool,
) -> CommandResult:
    """Check the skills at each PATH: a SKILL.md, a skill's folder, or a folder of skills.

    Without PATH, check the default skill folders. The exit code is 1 if a skill is rejected. --fix
    quotes values, lowercases keys, renames skill.md and so on; it never changes the instructions.
    """
    if dry_run and not apply_fixes:
        raise click.UsageError("--dry-run needs --fix")
    settings = read_settings(follow_links=follow_links)
    chosen = find_profile(profile).with_depth(depth)
    fixed: tuple[FixResult, ...] | None = None
    if apply_fixes:
        from skillhall._internal.authoring.fix import fix

        fixed = fix(paths, chosen, settings, dry_run=dry_run)
    with skill_checking() as (progress, map_batches):
        report = validate(paths, chosen, settings, progress, map_batches=map_batches)
    shows_diff = dry_run and output_format == "text"
    if output_format != "json":
        print_fixes(fixed or (), shows_diff=shows_diff)
        if not shows_diff:
            _print_findings(output_format, report, settings.working_directory, verbose=verbose)
    accepted = sum(result.accepted for result in report.results)
    rejected = len(report.results) - accepted
    warnings = sum(judged.effect is Effect.WARN for judged in report.findings)
    counts = {"accepted": accepted, "rejected": rejected, "warnings": warnings}
    # JSON has each finding twice: with its skill, and in the list of all.
    encoded = [*encode_findings(report.findings)] if output_format == "json" else []
    encoded_of_results = iter(encoded[len(report.scan_findings) :])
    data: dict[str, object] = {
        "profile": report.profile,
        "results": EncodedItems(_encode_results(report.results, encoded_of_results)),
        "summary": {"skills": len(report.results), **counts},
    }
    if fixed is not None:
        data["fixed"] = [serialize_fix(result) for result in fixed]
    summary = f"{format_count(len(report.results), 'skill')}: {accepted} accepted"
    summary += f", {rejected} rejected" if rejected else ""
    summary += f", {format_count(warnings, 'warning')}" if warnings else ""
    summary += f" (profile {report.profile!r})"
    return CommandResult(
        data,
        EncodedItems(iter(encoded)),
        None if report.accepted else ErrorInfo("invalid_skill", summary),
        exit_code=0 if report.accepted else 1,
        warnings=[summary],
    )


def _print_findings(
    output_format: str, report: ValidationReport, working_directory: str, *, verbose: bool
) -> None:
    shown = [each for each in report.findings if verbose or each.effect is not Effect.ACCEPT]
    if output_format == "sarif":
        print_json_value(build_sarif(to_sarif_results(shown), working_directory))
    elif output_format == "github":
        print_lines(format_github(shown, working_directory))
    else:
        print_lines(format_text(shown, working_directory, color=has_color(sys.stdout)))


def print_fixes(fixed: Iterable["FixResult"], *, shows_diff: bool) -> None:
    """Print a line for each file that was fixed, or would be; after its diff, if it is shown."""
    for result in fixed:
        if shows_diff:
            print_text(result.diff)
        status = "fixed" if result.written else "not fixed" if result.problem else "would fix"
        print_message(f"{status} {result.path}: {result.problem or '; '.join(result.changes)}")


def serialize_fix(result: "FixResult") -> dict[str, object]:
    """Return the result of a fix as JSON."""
    data = asdict(result)
    problem = sanitize_line(data.pop("problem"))
    return {**data, "problem": problem} if problem else data


def _encode_results(results: Sequence[ValidationResult], encoded: Iterator[str]) -> Iterator[str]:
    """Encode results without `json`, for speed: there may be tens of thousands.

    `encoded` has the findings of all results.
    """
    for result in results:
        name = f', "name": {quoted(result.name)}' if result.name else ""
        accepted = "true" if result.accepted else "false"
        findings = ", ".join(islice(encoded, len(result.findings)))
        start = f'{{"path": {quoted(result.path)}{name}, "accepted": {accepted}, '
        yield f'{start}"findings": [{findings}]}}'
