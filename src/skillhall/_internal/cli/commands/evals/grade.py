"""`skillhall eval grade`: grades stored runs again, without running anything."""

from __future__ import annotations

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_grading import (
    GradingRequest,
    GradingTarget,
    describe_failed_gates,
    describe_missing_verdicts,
    format_graded,
    grade_skills,
    grading_options,
    open_judge,
    serialize_graded,
    write_reports,
)
from skillhall._internal.cli.commands.evals.eval_skills import find_eval_skills
from skillhall._internal.cli.commands.evals.report_files import ReportFiles, report_options
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.grading.iteration_grading import DEFAULT_JOBS
from skillhall._internal.evals.grading.skill_grading import GradingOptions
from skillhall._internal.evals.runs.evaluated_skill import read_evaluated_skill
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.evals.eval_file import parse_eval_file


@json_command("grade", "skillhall eval grade ./skills/csv-report --judge openai-chat:gpt-5")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
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
@flag("--allow-scripts", help="Let the skills' scripts check the outputs, in a sandbox.")
@report_options
def command(
    *,
    paths: tuple[str, ...],
    iteration: int | None,
    grading: GradingRequest,
    jobs: int,
    results: str,
    allow_scripts: bool,
    reports: ReportFiles,
) -> CommandResult:
    """Grade the stored runs of the skills at each PATH, and summarize the results.

    Assertions are read from the eval files as they are now. Stored verdicts about unchanged
    assertions are reused.
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
    options = GradingOptions(judge=judge, compares_pairs=grading.is_compared, jobs=jobs)
    skills = grade_skills(targets, options, grading.gates)
    write_reports(reports, targets, skills)
    failed = describe_failed_gates(one.gates for one in skills)
    return CommandResult(
        {
            "skills": [
                {
                    "name": target.name,
                    "iteration": str(target.iteration.path),
                    **serialize_graded(one),
                }
                for target, one in zip(targets, skills, strict=True)
            ]
        },
        error=ErrorInfo("gate_failed", failed) if failed else None,
        exit_code=1 if failed else 0,
        lines=[line for one in skills for line in format_graded(one)],
        warnings=[
            *describe_missing_verdicts(skills, has_judge=judge is not None),
            *([failed] if failed else []),
        ],
    )


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
