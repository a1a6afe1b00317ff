"""Grading options of eval commands, and the report of graded runs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_model import require_chat_packages
from skillhall._internal.cli.commands.evals.report_files import ReportFiles
from skillhall._internal.cli.commands.evals.summary_output import format_summary
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.options import Command, flag
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.gates import (
    Gate,
    GateResult,
    InvalidGate,
    collect_metrics,
    collect_trigger_metrics,
    evaluate_gates,
    parse_gates,
    serialize_gate,
)
from skillhall._internal.evals.grading.iteration_grading import GradingProgress
from skillhall._internal.evals.grading.skill_grading import (
    GradedIteration,
    GradingOptions,
    grade_iteration,
)
from skillhall._internal.evals.reports.stored_results import read_skill_results
from skillhall._internal.evals.summary_files import serialize_summary
from skillhall._internal.evals.triggers.trigger_files import find_result

if TYPE_CHECKING:
    from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
    from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.skill.evals.eval_file import EvalCase

_CONTINUE = "run the command again to continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingRequest:
    """The grading options of a command."""

    judge: str = ""  # the name of a model
    is_judged: bool = True
    is_compared: bool = False
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTarget:
    """The iteration of a skill that is graded, and its cases."""

    name: str
    path: str  # of the skill
    cases: Sequence[EvalCase]
    workspace: EvalWorkspace
    iteration: EvalIteration
    allowed_scripts: EvaluatedSkill | None = None  # if scripts may check the outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedSkill:
    """The graded iteration of one skill, and the results of the gates."""

    graded: GradedIteration
    gates: tuple[GateResult, ...]


def _parse_gate_option(
    _context: click.Context, _parameter: click.Parameter, texts: Sequence[str]
) -> tuple[Gate, ...]:
    try:
        return tuple(gate for text in texts for gate in parse_gates(text))
    except InvalidGate as error:
        raise click.BadParameter(str(error)) from None


gate_option = click.option(
    "--gate",
    multiple=True,
    callback=_parse_gate_option,
    metavar="CONDITIONS",
    help="Fail unless these conditions hold, such as 'pass_rate>=0.8, delta.low>0'. Repeatable.",
)


def grading_options(function: Command) -> Command:
    """Add --judge, --no-judge, --blind-compare and --gate, passed on as `grading`."""

    @wraps(function)
    def run(
        *,
        judge: str,
        no_judge: bool,
        blind_compare: bool,
        gate: tuple[Gate, ...],
        **others: object,
    ) -> CommandResult | int | None:
        if no_judge and (judge or blind_compare):
            raise click.UsageError("--no-judge cannot be combined with --judge or --blind-compare")
        grading = GradingRequest(
            judge=judge, is_judged=not no_judge, is_compared=blind_compare, gates=gate
        )
        return function(grading=grading, **others)

    options = (
        click.option(
            "--judge",
            default="",
            metavar="PROVIDER:NAME",
            help="Judge text assertions with this model.",
        ),
        flag("--no-judge", help="Leave text assertions without a verdict."),
        flag("--blind-compare", help="Let the judge compare answers with and without the skill."),
        gate_option,
    )
    decorated: Command = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def open_judge(
    grading: GradingRequest, default: str, cases: Sequence[EvalCase]
) -> TextModel | None:
    """Return the judge; `None` if there is none, or nothing for it to judge.

    Raises: CommandFailed, ModelUnavailable.
    """
    name = grading.judge or default
    has_texts = any(one.check is None for case in cases for one in case.assertions)
    if not grading.is_judged or not (has_texts or grading.is_compared):
        return None
    if not name:
        if grading.is_compared:
            raise CommandFailed("usage", "--blind-compare needs a model", "name it with --judge")
        return None
    require_chat_packages()
    from skillhall._internal.evals.text_model import TextModel

    return TextModel.open(name)


def grade_skills(
    targets: Sequence[GradingTarget], options: GradingOptions, gates: Sequence[Gate]
) -> list[GradedSkill]:
    """Grade the iteration of each skill, and apply the gates."""
    graded = compared = 0
    gc.enable()  # `main` disables it for short commands
    with transfer_progress() as progress, asyncio.Runner() as runner:

        def report_graded(_: GradingProgress) -> None:
            nonlocal graded
            graded += 1
            if progress is not None:
                progress("graded runs", graded, 0)

        def report_compared() -> None:
            nonlocal compared
            compared += 1
            if progress is not None:
                progress("compared pairs", compared, 0)

        skills = []
        for one in targets:
            own = replace(
                options,
                scripts_of=one.allowed_scripts,
                on_graded=report_graded,
                on_compared=report_compared,
            )
            result = runner.run(grade_iteration(one.iteration, one.cases, own))
            skills.append(apply_gates(result, one.workspace, gates))
            if result.stop_reason:
                options = replace(options, judge=None)  # the limit is for all skills
        return skills


def apply_gates(
    graded: GradedIteration, workspace: EvalWorkspace, gates: Sequence[Gate]
) -> GradedSkill:
    """Return a graded iteration with the results of its gates."""
    digest = graded.summary.subject.skill_digest
    triggers = find_result(workspace.iterations()) if gates else None
    values = {**collect_metrics(graded.summary), **collect_trigger_metrics(triggers, digest)}
    return GradedSkill(graded=graded, gates=evaluate_gates(gates, values))


def format_graded(skill: GradedSkill) -> list[str]:
    """Return the lines about a graded skill."""
    return [*format_summary(skill.graded.summary), *(f"  gate {one}" for one in skill.gates)]


def write_reports(
    reports: ReportFiles, targets: Sequence[GradingTarget], skills: Sequence[GradedSkill]
) -> None:
    """Write the report files of graded skills. Raises: OSError."""
    if not any(reports):
        return
    reports.write(
        [
            replace(
                read_skill_results(
                    target.name, target.path, target.workspace, iteration=target.iteration
                ),
                gates=skill.gates,
            )
            for target, skill in zip(targets, skills, strict=True)
        ]
    )


def describe_failed_gates(results: Iterable[Sequence[GateResult]]) -> str:
    """Return a message about the gates of skills that failed; "" if all passed."""
    gates = [gate for one in results for gate in one]
    failed = sum(not gate.passed for gate in gates)
    return f"{failed} of {format_count(len(gates), 'gate')} failed" if failed else ""


def find_stop_reason(skills: Sequence[GradedSkill]) -> str:
    """Return the limit that stopped the judge; "" if none did."""
    return next((one.graded.stop_reason for one in skills if one.graded.stop_reason), "")


def describe_missing_verdicts(skills: Sequence[GradedSkill], *, has_judge: bool) -> list[str]:
    """Return a warning if assertions have no verdict."""
    missing = sum(arm.assertions.not_judged for one in skills for arm in one.graded.summary.arms)
    if not missing:
        return []
    hint = "" if has_judge else "; name a model with --judge to judge text assertions"
    return [f"{format_count(missing, 'assertion')} without a verdict{hint}"]


def serialize_graded(skill: GradedSkill) -> Mapping[str, object]:
    """Return a graded skill for JSON output."""
    report = skill.graded.report
    return {
        "summary": serialize_summary(skill.graded.summary),
        "graded": report.runs,
        "grades_reused": report.reused,
        "gates": [serialize_gate(one) for one in skill.gates],
    }


def add_grades(result: CommandResult, skills: Sequence[GradedSkill]) -> CommandResult:
    """Return the result of a command with the grades of its skills.

    A failed gate, or a limit that stopped the judge, makes the exit code 1.
    """
    rows = result.data["skills"]
    entries = rows if isinstance(rows, list) else []
    failed = describe_failed_gates(one.gates for one in skills)
    stopped = find_stop_reason(skills)
    stopped = f"judging stopped: {stopped}" if stopped else ""
    error = ErrorInfo("incomplete", stopped, _CONTINUE) if stopped else None
    error = error or (ErrorInfo("gate_failed", failed) if failed else None)
    return result._replace(
        data={
            **result.data,
            "skills": [
                {**entry, **serialize_graded(skill)}
                for entry, skill in zip(entries, skills, strict=True)
            ],
        },
        error=result.error or error,
        exit_code=1 if error else result.exit_code,
        lines=[*result.lines, *(line for one in skills for line in format_graded(one))],
        warnings=[
            *result.warnings,
            *([stopped, f"hint: {_CONTINUE}"] if stopped else []),
            *([failed] if failed else []),
        ],
    )
