"""`skillhall eval run`: runs the test cases of skills with and without them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from skillhall._internal.agents.scripts.script_sandbox import probe_support
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_agent import (
    OpenedAgent,
    open_chat_agent,
    open_command_agent,
)
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
from skillhall._internal.cli.commands.evals.run_output import (
    EvalEstimate,
    format_run,
    report_estimates,
    report_runs,
)
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import dry_run_option, flag, json_command
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import print_message
from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.grading.skill_grading import GradingOptions
from skillhall._internal.evals.runs.eval_runner import DEFAULT_JOBS, EvalRunReport, FinishedRun
from skillhall._internal.evals.runs.recording import (
    ReplayAgent,
    find_recording,
    list_recorded_iterations,
    read_recorded_plan,
)
from skillhall._internal.evals.runs.run_limits import ModelPrice, RunLimits, RunSpending
from skillhall._internal.evals.runs.run_preparation import RunOptions, prepare_plan
from skillhall._internal.evals.runs.skill_eval import RunningOptions, SkillEval

if TYPE_CHECKING:
    from skillhall._internal.evals.text_model import TextModel

_MIB = 1024 * 1024
_DEFAULTS = RunLimits()
_UNKNOWN_PRICE = "--max-cost needs the price of the judge, which is not known"


@json_command("run", "skillhall eval run ./skills/csv-report --model openai-chat:gpt-5")
@click.argument("paths", nargs=-1, metavar="[SKILL]...")
@click.option("--model", metavar="PROVIDER:NAME", help="Run the cases with this model.")
@click.option("--case", "case_ids", multiple=True, metavar="ID", help="Run only this case.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="Run each case N times.",
)
@click.option(
    "--against",
    default="",
    metavar="REV|PATH",
    help="Also run another version: a git revision or a folder.",
)
@click.option(
    "--catalog",
    multiple=True,
    metavar="DIR",
    help="Also give the agent the other skills in this folder. Repeatable.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=DEFAULT_JOBS,
    show_default=True,
    metavar="N",
    help="Execute up to N runs in parallel.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULTS.timeout,
    show_default=True,
    metavar="SECONDS",
    help="Stop a run after this time.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=_DEFAULTS.max_requests,
    show_default=True,
    metavar="N",
    help="Stop a run after N requests to the model.",
)
@click.option(
    "--max-output",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULTS.max_output / _MIB,
    show_default=True,
    metavar="MIB",
    help="Stop a run if its reply or its files exceed this size.",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", help="Stop all runs after N tokens."
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Stop all runs after this cost in US dollars.",
)
@price_option
@click.option(
    "--agent-command",
    metavar="TEMPLATE",
    help="Run this external agent, such as 'my-agent --task {prompt}'.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Pass this variable to the external agent. Repeatable.",
)
@click.option(
    "--skills-folder",
    "skill_folders",
    multiple=True,
    metavar="DIR",
    help="Put skills into this folder of the external agent's home folder. Repeatable.  "
    "[default: .agents/skills and .claude/skills]",
)
@flag("--allow-scripts", help="Let the agent run the skills' scripts.")
@click.option(
    "--replay", metavar="DIR", help="Use only the recorded runs in this folder, without an agent."
)
@click.option(
    "--results", default="", metavar="DIR", help="Store results here.  [default: next to the skill]"
)
@flag("--fresh", help="Run everything again instead of reusing stored results.")
@grading_options
@report_options
@dry_run_option
def command(
    *,
    paths: tuple[str, ...],
    model: str | None,
    case_ids: tuple[str, ...],
    repeats: int,
    against: str,
    catalog: tuple[str, ...],
    jobs: int,
    timeout: float,
    max_requests: int,
    max_output: float,
    max_tokens: int | None,
    max_cost: float | None,
    price: ModelPrice | None,
    agent_command: str | None,
    variables: tuple[str, ...],
    skill_folders: tuple[str, ...],
    allow_scripts: bool,
    replay: str | None,
    results: str,
    fresh: bool,
    grading: GradingRequest,
    reports: ReportFiles,
    dry_run: bool,
) -> CommandResult:
    """Run the test cases of each SKILL.

    SKILL is a name, a folder or a folder of skills. Each case runs with the skill and without it.
    Each run has its own folder with the input files of the case. Results are stored next to the
    skill. An interrupted command continues where it stopped, and equal runs are not repeated. The
    assertions are graded at the end. The --judge model grades text assertions; without --judge, the
    --model model does.
    """
    settings = read_settings()
    if replay and (model or agent_command or fresh):
        message = "--replay cannot be combined with --model, --agent-command or --fresh"
        raise click.UsageError(message)
    skills = find_eval_skills(paths, settings)
    opened = OpenedAgent(ReplayAgent())
    if agent_command:
        opened = open_command_agent(agent_command, variables, skill_folders)
    elif not replay:
        name = model or settings.model
        opened = open_chat_agent(
            name, price, settings, allows_scripts=allow_scripts, is_dry_run=dry_run
        )
    _check_spending_limits(opened, max_tokens, max_cost)
    options = RunOptions(
        repeats=repeats,
        case_ids=case_ids,
        against=against,
        catalog=catalog,
        limits=RunLimits(
            timeout=timeout, max_requests=max_requests, max_output=round(max_output * _MIB)
        ),
        allows_scripts=allow_scripts,
        has_script_tool=opened.has_script_tool,
    )
    evals = []
    for one in skills:
        recorded = list_recorded_iterations(replay, one.path) if replay else ()
        plan = (
            prepare_plan(one.name, one.path, opened.agent.identity, options, settings)
            if not recorded
            else read_recorded_plan(one.name, one.path, find_recording(recorded), case_ids)
        )
        workspace = EvalWorkspace.of_skill(one.path, results or settings.eval_results)
        evals.append(
            SkillEval(
                plan=plan,
                path=one.path,
                workspace=workspace,
                recorded=recorded,
                uses_stored_runs=not fresh,
            )
        )
    if not any(one.plan.runs for one in evals):
        raise CommandFailed("not_found", "no case has this id")
    if dry_run:
        default = "" if replay else model or settings.model
        has_judge = grading.is_judged and bool(grading.judge or default)
        return report_estimates(
            [
                EvalEstimate(
                    one,
                    one.estimate(opened.price),
                    one.estimate_judge(is_compared=grading.is_compared) if has_judge else None,
                )
                for one in evals
            ]
        )
    judge = None
    if not replay or grading.judge:
        judge = _open_judge(evals, grading, model or settings.model, price)
    if max_cost is not None and judge is not None and judge.price is None:
        raise CommandFailed("usage", _UNKNOWN_PRICE, "limit the tokens with --max-tokens")
    spending = RunSpending(max_tokens, max_cost)
    done = _run_all(evals, opened, jobs, spending)
    how = GradingOptions(
        judge=None if any(report.stop_reason for _, report in done) else judge,
        compares_pairs=grading.is_compared,
        jobs=jobs,
        spend=spending.add,
    )
    targets = [_to_target(*one, allow_scripts=allow_scripts) for one in done]
    graded = grade_skills(targets, how, grading.gates)
    write_reports(reports, targets, graded)
    warnings = [
        *_describe_scripts(evals, opened, allow_scripts=allow_scripts),
        *describe_missing_verdicts(graded, has_judge=judge is not None),
    ]
    return add_grades(report_runs(done, spending, warnings), graded)


def _open_judge(
    evals: Sequence[SkillEval], grading: GradingRequest, default: str, price: ModelPrice | None
) -> TextModel | None:
    """Return the judge; the price of the option is for the model of the agent only."""
    cases = [planned.case for one in evals for planned in one.plan.cases]
    judge = open_judge(grading, default, cases)
    if judge is not None and judge.name == default and price is not None:
        return replace(judge, price=price)
    return judge


def _to_target(one: SkillEval, report: EvalRunReport, *, allow_scripts: bool) -> GradingTarget:
    """Return the iteration of a finished eval for grading."""
    return GradingTarget(
        name=one.plan.skill.name,
        path=one.path,
        cases=[planned.case for planned in one.plan.cases],
        workspace=one.workspace,
        iteration=report.iteration,
        allowed_scripts=one.plan.skill if allow_scripts else None,
    )


def _check_spending_limits(
    opened: OpenedAgent, max_tokens: int | None, max_cost: float | None
) -> None:
    """Check that the limits can be enforced. Raises: CommandFailed."""
    require_price(opened.price, max_cost)
    if max_tokens is not None and not opened.has_script_tool:
        raise CommandFailed(
            "usage",
            "--max-tokens cannot limit an external agent, which does not report its tokens",
            "limit its time with --timeout",
        )


def _describe_scripts(
    evals: Sequence[SkillEval], opened: OpenedAgent, *, allow_scripts: bool
) -> list[str]:
    """Return notes for the user about scripts of the skills."""
    names = ", ".join(one.plan.skill.name for one in evals if one.plan.skill.has_scripts)
    if not names or not opened.has_script_tool:
        return []
    if allow_scripts:
        return [f"scripts of {names}: {probe_support().describe()}"]
    return [f"scripts of {names} did not run; --allow-scripts gives the agent a tool for them"]


def _run_all(
    evals: Sequence[SkillEval], opened: OpenedAgent, jobs: int, spending: RunSpending
) -> list[tuple[SkillEval, EvalRunReport]]:
    """Run the evals of all skills until a limit of all runs is reached."""
    total, done = sum(len(one.plan.runs) for one in evals), 0
    reports: list[tuple[SkillEval, EvalRunReport]] = []
    gc.enable()  # `main` disables it for short commands
    with transfer_progress() as progress, asyncio.Runner() as runner:

        def report_finished(finished: FinishedRun) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress("runs", done, total)
            if finished.record.status is RunStatus.FAILED:
                print_message(format_run(finished.record))

        options = RunningOptions(
            jobs=jobs, spending=spending, redactor=opened.redactor, on_finished=report_finished
        )
        for one in evals:
            reports.append((one, runner.run(one.run(opened.agent, options))))
            if reports[-1][1].stop_reason:
                break
    return reports
