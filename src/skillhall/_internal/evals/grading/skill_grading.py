"""Grading of an iteration with all graders; writes its summary and result files."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.grading.check_grader import CheckGrader
from skillhall._internal.evals.grading.check_process import CheckProcess
from skillhall._internal.evals.grading.iteration_grading import (
    DEFAULT_JOBS,
    IterationGrading,
)
from skillhall._internal.evals.grading.judge_grader import JudgeGrader
from skillhall._internal.evals.grading.pairwise import PairwiseJudge
from skillhall._internal.evals.grading.script_grader import ScriptGrader
from skillhall._internal.evals.runs.run_limits import SpendingLimitReached
from skillhall._internal.evals.summary_files import summarize_iteration, write_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.evals.eval_records import RunKey, RunUsage
    from skillhall._internal.evals.eval_summary import EvalSummary
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.grading.grader import Grader
    from skillhall._internal.evals.grading.iteration_grading import (
        GradingProgress,
        GradingReport,
    )
    from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.skill.evals.eval_file import EvalCase


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingOptions:
    """How the runs of an iteration are graded."""

    judge: TextModel | None = None
    compares_pairs: bool = False  # needs a judge
    scripts_of: EvaluatedSkill | None = None  # if its scripts are allowed
    jobs: int = DEFAULT_JOBS
    # Gets the usage of the judge for each run. It may raise SpendingLimitReached.
    spend: Callable[[RunKey, RunUsage], None] = lambda _key, _usage: None
    on_graded: Callable[[GradingProgress], None] = lambda _: None
    on_compared: Callable[[], None] = lambda: None  # after each blind comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedIteration:
    """The summary of an iteration, and the report of its grading."""

    iteration: EvalIteration
    summary: EvalSummary
    report: GradingReport
    stop_reason: str = field(default="")  # the limit that was reached


async def grade_iteration(
    iteration: EvalIteration, cases: Sequence[EvalCase], options: GradingOptions
) -> GradedIteration:
    """Grade all runs of an iteration, and write its results.

    Raises: OSError, ModelUnavailable if no request to the judge can succeed; Busy if another
    command grades it.
    """
    by_id = {case.id: case for case in cases}
    async with AsyncExitStack() as stack:
        stack.enter_context(iteration.lock())
        process = await stack.enter_async_context(CheckProcess())
        graders: list[Grader] = [CheckGrader(process)]
        if options.scripts_of is not None:
            graders.append(ScriptGrader(options.scripts_of))
        if options.judge is not None:
            await stack.enter_async_context(options.judge.model)
            graders.append(JudgeGrader(options.judge))
        grading = IterationGrading(
            iteration=iteration,
            cases=by_id,
            graders=graders,
            judge="" if options.judge is None else options.judge.name,
            jobs=options.jobs,
            spend=options.spend,
            on_graded=options.on_graded,
        )
        report = await grading.grade()
        stop_reason = report.stop_reason
        if options.judge is not None and options.compares_pairs and not stop_reason:
            judge = PairwiseJudge(options.judge, iteration)
            stop_reason = await _compare_pairs(judge, by_id, options)
    summary = summarize_iteration(iteration)
    write_summary(iteration, summary)
    return GradedIteration(
        iteration=iteration, summary=summary, report=report, stop_reason=stop_reason
    )


async def _compare_pairs(
    judge: PairwiseJudge, cases: Mapping[str, EvalCase], options: GradingOptions
) -> str:
    """Compare the runs of the skill with all others; return the limit that stopped it."""
    stop_reason = ""
    runs = judge.iteration.iter_runs()

    async def work() -> None:
        nonlocal stop_reason
        for stored in runs:
            if stop_reason:
                return
            key = stored.record.key
            case = cases.get(key.case_id)
            if case is None or key.arm is Arm.WITH_SKILL:
                continue
            usage = await judge.compare(case, stored)
            options.on_compared()
            try:
                if usage.requests:
                    options.spend(key, usage)
            except SpendingLimitReached as reached:
                stop_reason = str(reached)

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(options.jobs):
                workers.create_task(work())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return stop_reason
