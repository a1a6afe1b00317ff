"""`skillhall eval grade`: grades stored runs again, without running anything."""

from __future__ import annotations

from dataclasses import replace

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_grading import (
    GradingRequest,
    GradingTarget,
    add_grades,
    describe_missing_verdicts,
    grade_skills,
    grading_options,
    open_judge,
    write_reports,
)
from skillhall._internal.cli.commands.evals.eval_model import price_option, require_price
from skillhall._internal.cli.commands.evals.eval_skill_lookup import find_eval_skills
from skillhall._internal.cli.commands.evals.report_files import ReportFiles, report_options
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.grading.iteration_grading import DEFAULT_JOBS
from skillhall._internal.evals.grading.skill_grading import GradingOptions
from skillhall._internal.evals.runs.evaluated_skill import read_evaluated_skill
from skillhall._internal.evals.runs.run_limits import ModelPrice, RunSpending
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.evals.eval_file import parse_eval_file


@json_command("grade", "skillhall eval grade ./skills/csv-report --judge openai-chat:gpt-5")
@click.argument("paths", nargs=-1, metavar="[SKILL]...")
@click.option(
    "--iteration",
    type=click.IntRange(1),
    metavar="N",
    help="Grade iteration N.  [default: the last]",
)
@grading_options
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=DEFAULT_JOBS,
    show_default=True,
    metavar="N",
    help="Grade up to N runs in parallel.",
)
@click.option(
    "--results", default="", metavar="DIR", help="Read results here.  [default: next to the skill]"
)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", help="Stop judging after N tokens."
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Stop judging after this cost in US dollars.",
)
@price_option
@flag("--allow-scripts", help="Let the skills' scripts check the outputs, in a sandbox.")
@report_options
def command(
    *,
    paths: tuple[str, ...],
    iteration: int | None,
    grading: GradingRequest,
    jobs: int,
    results: str,
    max_tokens: int | None,
    max_cost: float | None,
    price: ModelPrice | None,
    allow_scripts: bool,
    reports: ReportFiles,
) -> CommandResult:
    """Grade the stored runs of each SKILL again.

    SKILL is a name, a folder or a folder of skills. Assertions are read from the eval files as they
    are now. Stored verdicts about unchanged assertions are reused.
    """
    settings = read_settings()
    targets = [
        _find_target(
            one.name,
            one.path,
            iteration,
            results or settings.eval_results,
            allow_scripts=allow_scripts,
        )
        for one in find_eval_skills(paths, settings)
    ]
    cases = [case for target in targets for case in target.cases]
    judge = open_judge(grading, settings.model, cases)
    if judge is not None:
        judge = replace(judge, price=price or judge.price)
        require_price(judge.price, max_cost)
    spending = RunSpending(max_tokens, max_cost)
    options = GradingOptions(
        judge=judge, compares_pairs=grading.is_compared, jobs=jobs, spend=spending.add
    )
    skills = grade_skills(targets, options, grading.gates)
    write_reports(reports, targets, skills)
    rows = [{"name": one.name, "iteration": str(one.iteration.path)} for one in targets]
    warnings = describe_missing_verdicts(skills, has_judge=judge is not None)
    return add_grades(CommandResult({"skills": rows}, warnings=warnings), skills)


def _find_target(
    name: str, path: str, number: int | None, results: str, *, allow_scripts: bool
) -> GradingTarget:
    """Return the iteration of a skill. Raises: CommandFailed if there is none."""
    workspace = EvalWorkspace.of_skill(path, results)
    iterations = [
        one
        for one in workspace.iterations()
        if number in (None, one.number) and next(one.iter_runs(), None) is not None
    ]
    if not iterations:
        hint = "create them with: skillhall eval run"
        missing = "no stored runs" + ("" if number is None else f" in iteration {number}")
        raise CommandFailed("not_found", f"{name} has {missing}", hint)
    skill = read_evaluated_skill(name, path)
    cases = parse_eval_file(skill.files[EVALS_PATH][0], name).cases
    return GradingTarget(
        name=name,
        path=path,
        cases=cases,
        workspace=workspace,
        iteration=iterations[-1],
        allowed_scripts=skill if allow_scripts else None,
    )
