"""`skillhall eval check`: checks the eval files of skills."""

import sys

import click

from skillhall._internal.authoring.eval_report import check_eval_files
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.author.report_formats import (
    build_sarif,
    format_github,
    format_text,
    to_sarif_results,
)
from skillhall._internal.cli.commands.evals.eval_skill_lookup import resolve_names
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.json_output import print_json_value
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, has_color, print_lines
from skillhall._internal.policy.effects import Effect, serialize_findings

_FORMATS = ["text", "json", "sarif", "github"]
_SHOWN_NAMES = 10  # of skills without evals; --json has all of them


@json_command("check", "skillhall eval check ./skills", formats=_FORMATS)
@click.argument("paths", nargs=-1, metavar="[SKILL]...")
@flag("-v", "--verbose", help="Show accepted findings too.")
def command(*, paths: tuple[str, ...], output_format: str, verbose: bool) -> CommandResult:
    """Check the eval files of each SKILL, without running anything.

    SKILL is a name, a folder or a folder of skills; without SKILL, the default skill folders are
    checked. The exit code is 1 if there is a problem. A skill without evals is not a problem.
    """
    settings = read_settings()
    report = check_eval_files(resolve_names(paths, settings), settings)
    working_directory = settings.working_directory
    shown = [one for one in report.findings if verbose or one.effect is not Effect.ACCEPT]
    if output_format == "sarif":
        print_json_value(build_sarif(to_sarif_results(shown), working_directory))
    elif output_format == "github":
        print_lines(format_github(shown, working_directory))
    elif output_format == "text":
        print_lines(format_text(shown, working_directory, color=has_color(sys.stdout)))
    without = [skill.name for skill in report.skills if not skill.summary.has_evals]
    skills = [
        {
            "name": skill.name,
            "path": skill.path,
            "cases": skill.summary.cases,
            "assertions": skill.summary.assertions,
            "queries": skill.summary.queries,
            "findings": serialize_findings(skill.findings),
        }
        for skill in report.skills
        if skill.summary.has_evals
    ]
    lines = [
        f"{skill.name}: {format_count(skill.summary.cases, 'case')}, "
        f"{format_count(skill.summary.assertions, 'assertion')}, "
        f"{skill.summary.queries} trigger {'query' if skill.summary.queries == 1 else 'queries'}"
        for skill in report.skills
        if skill.summary.has_evals
    ]
    total = f"{format_count(len(report.skills), 'skill')}: {len(skills)} with evals"
    total += f", {format_count(report.problems, 'problem')}" if report.problems else ""
    names = [*without[:_SHOWN_NAMES], *(["…"] if len(without) > _SHOWN_NAMES else [])]
    warnings = [f"{len(without)} without evals: {', '.join(names)}"] if without else []
    return CommandResult(
        {"skills": skills, "without_evals": without, "problems": report.problems},
        report.findings,
        ErrorInfo("invalid_skill", total) if report.problems else None,
        exit_code=1 if report.problems else 0,
        lines=lines if output_format == "text" else (),
        warnings=[*warnings, total],
    )
