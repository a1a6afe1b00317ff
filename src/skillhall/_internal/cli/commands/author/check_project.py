"""`skillhall check`: runs all checks of a project, with one report and exit code."""

import sys
from collections.abc import Sequence

import click

from skillhall._internal.agents.config.agent_config import find_config
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.author.check_formats import (
    build_check_sarif,
    format_check_github,
    format_check_junit,
    format_check_markdown,
    format_check_text,
)
from skillhall._internal.cli.commands.evals.eval_grading import gate_option
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.json_output import print_json_value
from skillhall._internal.cli.options import depth_option, flag, follow_links_option, json_command
from skillhall._internal.cli.parallel_map import skill_checking
from skillhall._internal.cli.param_types import ProfileParam
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, has_color, print_lines, sanitize_line
from skillhall._internal.evals.gates import Gate
from skillhall._internal.project_checks.baseline_file import (
    Baseline,
    get_baseline_folder,
    read_baseline,
    write_baseline,
)
from skillhall._internal.project_checks.check_config import CheckConfig, read_check_config
from skillhall._internal.project_checks.check_findings import CheckFinding, ProjectCheck
from skillhall._internal.project_checks.check_run import CheckReport, CheckRequest, run_checks
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import find_profile
from skillhall.errors import SkillFileNotFound

_FORMATS = ["text", "json", "sarif", "github", "junit", "markdown"]


@json_command("check", "skillhall check --format github --baseline baseline.json", formats=_FORMATS)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--profile",
    type=ProfileParam(),
    metavar="PROFILE",
    help="Apply the rules of this profile.  [default: specification]",
)
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice([kind.value for kind in ProjectCheck]),
    help="Leave out this check. Repeatable.",
)
@gate_option
@click.option(
    "--results",
    default="",
    metavar="DIR",
    help="Read eval results here.  [default: next to the skill]",
)
@click.option("--baseline", metavar="FILE", help="Fail only for findings that are not in FILE.")
@flag("--update-baseline", help="Write all findings to the baseline, and succeed.")
@click.option(
    "--changed",
    default="",
    metavar="BASE",
    help="Check only skills that changed since the git revision BASE.",
)
@flag("--files", "are_files", help="Each PATH is a file: check the skills that contain them.")
@click.option(
    "--config",
    metavar="FILE",
    help="Read the settings from this file.  [default: ./skillhall.toml or ./skillhall.json]",
)
@depth_option
@follow_links_option
@flag("-v", "--verbose", help="Show notes and known findings too.")
def command(
    *,
    paths: tuple[str, ...],
    profile: str | None,
    skip: tuple[str, ...],
    gate: tuple[Gate, ...],
    results: str,
    baseline: str | None,
    update_baseline: bool,
    changed: str,
    are_files: bool,
    config: str | None,
    depth: int | None,
    follow_links: bool,
    verbose: bool,
    output_format: str,
) -> CommandResult:
    """Run all checks of a project: validate, scan, verify and the gates of evals.

    Without PATH, check the paths in the table [check] of skillhall.toml, else the default skill
    folders. verify compares installed skills with the lock file. The exit code is 1 if a skill is
    rejected, has a high or medium risk, differs from the lock file, or fails a gate.
    """
    settings = read_settings(follow_links=follow_links)
    settings, chosen = _read_config(settings, config)
    baseline_path = baseline or chosen.baseline
    if update_baseline and not baseline_path:
        raise click.UsageError("--update-baseline needs --baseline FILE")
    if update_baseline and (changed or are_files):
        raise click.UsageError("--update-baseline checks all skills; omit --changed and --files")
    if are_files and (changed or not paths):
        raise click.UsageError("--files needs a PATH, and cannot be combined with --changed")
    request = CheckRequest(
        paths=paths or chosen.paths,
        profile=find_profile(profile or chosen.profile or "specification"),
        skip=frozenset(map(ProjectCheck, skip)) or chosen.skip,
        gates=gate or chosen.gates,
        results_folder=results or settings.eval_results,
        depth=depth or chosen.depth,
        changed_since=changed,
        are_files=are_files,
    )
    known = None if update_baseline or not baseline_path else _read_baseline(baseline_path)
    with skill_checking() as (progress, map_batches):
        report = run_checks(request, settings, progress, map_batches)
    base = get_baseline_folder(baseline_path) if baseline_path else settings.working_directory
    if update_baseline:
        write_baseline(baseline_path, report.findings)
        known = read_baseline(baseline_path)
    findings = report.findings if known is None else known.mark_known(report.findings)
    is_partial = bool(changed or paths)
    gone = 0 if known is None or is_partial else known.count_gone(findings)
    return _build_result(
        report,
        findings,
        working_directory=settings.working_directory,
        base=base,
        output_format=output_format,
        gone=gone,
        verbose=verbose,
    )


def _read_config(settings: Settings, config: str | None) -> tuple[Settings, CheckConfig]:
    path = config or find_config(settings.working_directory)
    chosen = read_check_config(path) if path else CheckConfig()
    return settings._replace(follow_links=settings.follow_links or chosen.follow_links), chosen


def _read_baseline(path: str) -> Baseline:
    try:
        return read_baseline(path)
    except SkillFileNotFound:
        raise CommandFailed(
            "not_found", f"there is no baseline {path!r}", "create it with --update-baseline"
        ) from None


def _build_result(
    report: CheckReport,
    findings: Sequence[CheckFinding],
    *,
    working_directory: str,
    base: str,
    output_format: str,
    gone: int,
    verbose: bool,
) -> CommandResult:
    new = [one for one in findings if not one.is_known]
    shown = [*findings] if verbose else [one for one in new if one.level != "note"]
    errors = sum(one.fails for one in new)
    warnings = sum(one.level == "warning" for one in new)
    known = sum(one.is_known for one in findings)
    skills = len(report.skills)
    parts = [format_count(errors, "error"), format_count(warnings, "warning")]
    summary = f"{format_count(skills, 'skill')} checked: {', '.join(parts)}"
    summary += f", {known} known" if known else ""
    messages = [
        f"{kind} did not run: {reason}"
        for kind, reason in report.not_run.items()
        if reason != "skipped"
    ]
    if gone:
        messages.append(
            f"obsolete findings in the baseline: {gone}; --update-baseline removes them"
        )
    text = ""
    if output_format == "text":
        print_lines(format_check_text(shown, working_directory, color=has_color(sys.stdout)))
    elif output_format == "github":
        print_lines(format_check_github(shown, working_directory))
    elif output_format == "markdown":
        print_lines(format_check_markdown(summary, shown, working_directory))
    elif output_format == "junit":
        text = format_check_junit(report, shown, working_directory)
    elif output_format == "sarif":
        print_json_value(build_check_sarif(shown, working_directory, base))
    return CommandResult(
        {
            "findings": [_serialize(one, base) for one in findings],
            "not_run": {kind.value: reason for kind, reason in report.not_run.items()},
            "summary": {
                "skills": skills,
                "errors": errors,
                "warnings": warnings,
                "known": known,
                "gone": gone,
            },
        },
        error=ErrorInfo("check_failed", summary) if errors else None,
        exit_code=1 if errors else 0,
        text=text,
        warnings=[*messages, summary],
    )


def _serialize(one: CheckFinding, base: str) -> dict[str, object]:
    finding = one.finding
    fields: dict[str, object] = {
        "check": one.kind.value,
        "code": finding.code.value,
        "level": one.level,
        "message": sanitize_line(finding.message),
        "path": finding.path,
        "line": finding.line,
        "hint": sanitize_line(finding.hint),
        "skill": finding.skill,
        "tier": None if one.tier is None else one.tier.value,
        "fingerprint": one.fingerprint(base),
    }
    known = {"known": True} if one.is_known else {}
    return {key: value for key, value in fields.items() if value not in ("", None)} | known
