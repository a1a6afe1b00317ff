"""`skillhall eval report`: reports of stored eval results."""

from collections.abc import Iterator

import click

from skillhall._internal.authoring.eval_report import check_eval_files
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_grading import (
    describe_failed_gates,
    gate_option,
)
from skillhall._internal.cli.commands.evals.eval_skill_lookup import resolve_names
from skillhall._internal.cli.commands.evals.report_files import render_report
from skillhall._internal.cli.commands.evals.summary_output import format_summary
from skillhall._internal.cli.commands.evals.trigger_output import format_result
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.gates import Gate
from skillhall._internal.evals.reports.model_overview import ROW_NAMES
from skillhall._internal.evals.reports.skill_results import UNKNOWN, SkillResults
from skillhall._internal.evals.reports.stored_results import (
    read_skill_results,
    serialize_skill_results,
)

_FORMATS = ["text", "json", "junit", "markdown", "html"]


@json_command("report", "skillhall eval report --format html > report.html", formats=_FORMATS)
@click.argument("paths", nargs=-1, metavar="[SKILL]...")
@click.option(
    "--results", default="", metavar="DIR", help="Read results here.  [default: next to the skill]"
)
@gate_option
def command(
    *, paths: tuple[str, ...], results: str, gate: tuple[Gate, ...], output_format: str
) -> CommandResult:
    """Report the newest results of each SKILL.

    Nothing is run. SKILL is a name, a folder or a folder of skills. junit is for the test views of
    CI systems, markdown for pull requests, and html is one page with plots and transcripts.
    """
    settings = read_settings()
    results = results or settings.eval_results
    stored = [
        read_skill_results(one.name, one.path, EvalWorkspace.of_skill(one.path, results), gate)
        for one in check_eval_files(resolve_names(paths, settings), settings).skills
    ]
    found = [one for one in stored if not one.is_empty]
    if not found:
        raise CommandFailed(
            "not_found", "no skill here has results", "create them with: skillhall eval run"
        )
    failed = describe_failed_gates(one.gates for one in found)
    is_rendered = output_format not in ("text", "json")
    return CommandResult(
        {"skills": [serialize_skill_results(one) for one in found]},
        error=ErrorInfo("gate_failed", failed) if failed else None,
        exit_code=1 if failed else 0,
        text=render_report(found, output_format) if is_rendered else "",
        lines=() if is_rendered else [line for one in found for line in _iter_lines(one)],
        warnings=[failed] if failed else (),
    )


def _iter_lines(results: SkillResults) -> Iterator[str]:
    if results.is_current is False:
        yield f"{results.skill_name}: the skill has changed since these results"
    if results.summary is not None:
        yield from format_summary(results.summary)
        others = (one for one in results.models if one.model != results.summary.subject.agent)
        for row in (row for one in others for row in one.list_rows()):
            cost = "" if row.cost == UNKNOWN else f", {row.cost}"
            used = f"{row.tokens} tokens, {row.seconds} s{cost} per run"
            yield f"  {row.model}, {ROW_NAMES[row.name]}: {row.rate}; {used}"
    if results.triggers is not None:
        yield from format_result(results.triggers.score)
    yield from (f"  gate {gate}" for gate in results.gates)
