"""Output of `skillhall eval run`: counts of runs, and estimates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.eval_records import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.evals.eval_records import RunRecord
    from skillhall._internal.evals.runs.eval_runner import EvalRunReport
    from skillhall._internal.evals.runs.run_estimate import JudgeEstimate, RunEstimate
    from skillhall._internal.evals.runs.run_limits import RunSpending
    from skillhall._internal.evals.runs.skill_eval import SkillEval


def _shorten(path: Path) -> str:
    """Return a path relative to the working directory, if it is in it."""
    working_directory = Path.cwd()
    return str(
        path.relative_to(working_directory) if path.is_relative_to(working_directory) else path
    )


def format_run(record: RunRecord) -> str:
    """Return a line about a run that did not complete."""
    key = record.key
    return f"case {key.case_id}, {key.arm}, run {key.repeat}: {record.status}: {record.reason}"


def report_runs(
    reports: Sequence[tuple[SkillEval, EvalRunReport]],
    spending: RunSpending,
    warnings: Sequence[str] = (),
) -> CommandResult:
    """Return the counts of runs. The exit code is 1 if runs failed or are missing."""
    stop_reason = next((one.stop_reason for _, one in reports if one.stop_reason), "")
    incomplete = sum(_count_incomplete(*one) for one in reports)
    error = None
    if incomplete:
        problem = f"{format_count(incomplete, 'run')} failed or did not start"
        is_replay = any(one.recorded for one, _ in reports)
        error = ErrorInfo(
            "upstream_error",
            f"{problem}: {stop_reason}" if stop_reason else problem,
            "record the runs again" if is_replay else "run the command again to continue",
        )
    cost = "unknown cost" if spending.cost is None else f"${spending.cost:.4f}"
    messages = [*warnings, f"used by this command: {spending.tokens} tokens, {cost}"]
    if error is not None:
        messages += [error.message, f"hint: {error.hint}"]
    return CommandResult(
        {
            "skills": [_serialize_report(*one) for one in reports],
            "tokens": spending.tokens,
            "cost": spending.cost,
            "stop_reason": stop_reason,
        },
        (),
        error,
        exit_code=1 if error else 0,
        lines=[line for one in reports for line in _format_report(*one)],
        warnings=messages,
    )


def _count_incomplete(one: SkillEval, report: EvalRunReport) -> int:
    """Return the number of runs without a usable result.

    A recording must have all of them.
    """
    missing = report.statuses[RunStatus.SKIPPED] if one.recorded else 0
    return report.not_run + report.statuses[RunStatus.FAILED] + missing


def _format_report(one: SkillEval, report: EvalRunReport) -> Iterator[str]:
    counts = [f"{count} {status}" for status, count in sorted(report.statuses.items())]
    counts += [f"{report.not_run} not run"] if report.not_run else []
    reused = f", {report.reused} of them stored before" if report.reused else ""
    runs = format_count(report.planned, "run")
    yield f"{one.plan.skill.name}: {runs}: {', '.join(counts)}{reused}"
    for reason, count in sorted(report.skip_reasons.items()):
        yield f"  {count} skipped: {reason}"
    yield f"  {_shorten(report.iteration.path)}"


def _serialize_report(one: SkillEval, report: EvalRunReport) -> dict[str, object]:
    return {
        "name": one.plan.skill.name,
        "digest": one.plan.skill.digest,
        "iteration": str(report.iteration.path),
        "planned": report.planned,
        "reused": report.reused,
        "not_run": report.not_run,
        "statuses": {str(status): count for status, count in sorted(report.statuses.items())},
        "skip_reasons": dict(sorted(report.skip_reasons.items())),
    }


class EvalEstimate(NamedTuple):
    """The estimates for the eval of one skill; `judge` is `None` without a judge."""

    one: SkillEval
    runs: RunEstimate
    judge: JudgeEstimate | None


def report_estimates(estimates: Sequence[EvalEstimate]) -> CommandResult:
    """Return the numbers of runs and requests, and the estimated tokens and cost."""
    return CommandResult(
        {"skills": [_serialize_estimate(*one) for one in estimates]},
        lines=[line for one in estimates for line in _format_estimate(*one)],
    )


def _format_estimate(
    one: SkillEval, estimate: RunEstimate, judge: JudgeEstimate | None
) -> Iterator[str]:
    stored = len(one.plan.runs) - estimate.runs
    reused = f", {stored} stored or skipped" if stored else ""
    yield f"{one.plan.skill.name}: {format_count(estimate.runs, 'run')} to do{reused}"
    cost = "" if estimate.cost is None else f", ${estimate.cost:.4f}"
    tokens = f"{estimate.input_tokens} tokens in, {estimate.output_tokens} out"
    yield f"  about {format_count(estimate.requests, 'request')}, {tokens}{cost}"
    if judge is not None and judge.requests:
        tokens = f"{judge.input_tokens} tokens in, {judge.output_tokens} out"
        yield f"  judge: about {format_count(judge.requests, 'request')}, {tokens}"


def _serialize_estimate(
    one: SkillEval, estimate: RunEstimate, judge: JudgeEstimate | None
) -> dict[str, object]:
    return {
        "name": one.plan.skill.name,
        "planned": len(one.plan.runs),
        "runs": estimate.runs,
        "measured": estimate.measured,
        "requests": estimate.requests,
        "input_tokens": estimate.input_tokens,
        "output_tokens": estimate.output_tokens,
        "cost": estimate.cost,
        "judge": None if judge is None else asdict(judge),
    }
