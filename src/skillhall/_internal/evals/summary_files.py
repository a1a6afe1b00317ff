"""Results of an iteration: its summary, `summary.json` and `benchmark.json`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.evals.benchmark_file import (
    BENCHMARK_FILE,
    build_benchmark,
    render_benchmark,
)
from skillhall._internal.evals.eval_aggregation import summarize
from skillhall._internal.evals.eval_records import Arm, add_usages
from skillhall._internal.evals.eval_summary import EvalSubject
from skillhall._internal.evals.grading_files import read_graded_run
from skillhall._internal.evals.pair_comparison import read_comparison
from skillhall._internal.evals.preference_summary import summarize_preferences
from skillhall._internal.evals.run_files import serialize_usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.evals.eval_records import GradedRun
    from skillhall._internal.evals.eval_summary import (
        ArmDifference,
        ArmSummary,
        AssertionSummary,
        EvalSummary,
        RateEstimate,
        Spread,
        VerdictCounts,
    )
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.pair_comparison import PairComparison
    from skillhall._internal.evals.preference_summary import PreferenceSummary

SUMMARY_FILE = "summary.json"
_FORMAT = 1
_FILE_MODE = 0o644


def summarize_iteration(iteration: EvalIteration) -> EvalSummary:
    """Return the summary of the graded runs of an iteration."""
    summary = summarize(_iter_graded_runs(iteration), read_subject(iteration))
    baselines = [arm.arm for arm in summary.arms if arm.arm is not Arm.WITH_SKILL]
    preferences = (
        summarize_preferences(baseline, _iter_comparisons(iteration, baseline))
        for baseline in baselines
    )
    return replace(summary, preferences=tuple(filter(None, preferences)))


def read_subject(iteration: EvalIteration) -> EvalSubject:
    """Return the subject of an iteration, from its plan."""
    plan = iteration.read_plan()
    agent = plan.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    return EvalSubject(
        skill_name=str(plan.get("skill_name", "")),
        skill_digest=str(plan.get("skill_digest", "")),
        agent=_describe_agent(agent),
        repeats=iteration.repeats,
        is_complete=plan.get("complete") is not False,
    )


def _describe_agent(agent: Mapping[str, object]) -> str:
    """Return the model, or the command of an external agent."""
    command = agent.get("command")
    if isinstance(command, list):
        return shlex.join(map(str, command))
    return str(agent.get("model", ""))


def write_summary(iteration: EvalIteration, summary: EvalSummary) -> None:
    """Write both files of an iteration. Raises: OSError."""
    with iteration.open_folder("") as folder:
        folder.write_file(BENCHMARK_FILE, render_benchmark(build_benchmark(summary)), _FILE_MODE)
    iteration.write_json(SUMMARY_FILE, serialize_summary(summary))


def serialize_summary(summary: EvalSummary) -> dict[str, object]:
    """Return a summary for JSON output."""
    subject = summary.subject
    usages = [arm.usage for arm in summary.arms]
    return {
        "format": _FORMAT,
        "skill_name": subject.skill_name,
        "skill_digest": subject.skill_digest,
        "agent": subject.agent,
        "judge": subject.judge,
        "repeats": subject.repeats,
        "complete": subject.is_complete,
        "arms": {str(arm.arm): _serialize_arm(arm) for arm in summary.arms},
        "differences": [serialize_difference(one) for one in summary.differences],
        "preferences": [_serialize_preference(one) for one in summary.preferences],
        "cases": [
            {
                "id": case.case_id,
                "pass_rates": {str(arm): rate for arm, rate in case.pass_rates.items()},
            }
            for case in summary.cases
        ],
        "assertions": [_serialize_assertion(one) for one in summary.assertions],
        "usage": serialize_usage(add_usages(usages)),
        "judge_usage": serialize_usage(summary.judge_usage),
    }


def serialize_difference(one: ArmDifference) -> dict[str, object]:
    """Return a difference for JSON output."""
    return {
        "arm": str(one.arm),
        "baseline": str(one.baseline),
        "cases": one.cases,
        "difference": one.difference,
        "low": one.interval.low if one.interval else None,
        "high": one.interval.high if one.interval else None,
        "verdict": str(one.verdict),
        "reason": one.reason,
    }


def serialize_rate_estimate(rate: RateEstimate | None) -> dict[str, float] | None:
    """Return a rate and its interval for JSON output."""
    if rate is None:
        return None
    return {"value": rate.value, "low": rate.interval.low, "high": rate.interval.high}


def _serialize_arm(arm: ArmSummary) -> dict[str, object]:
    return {
        "runs": arm.runs,
        "statuses": {str(status): count for status, count in arm.statuses.items()},
        "assertions": _serialize_counts(arm.assertions),
        "cases": arm.cases,
        "pass_rate": serialize_rate_estimate(arm.pass_rate),
        "shortage": arm.shortage,
        "pass_at_k": [*arm.pass_at],
        "pass_hat_k": [*arm.pass_hat],
        "seconds": _serialize_spread(arm.seconds),
        "tokens": _serialize_spread(arm.tokens),
        "cost_per_run": arm.cost_per_run,
        "usage": serialize_usage(arm.usage),
        "judge_usage": serialize_usage(arm.judge_usage),
    }


def _serialize_preference(one: PreferenceSummary) -> dict[str, object]:
    return {
        "baseline": str(one.baseline),
        "counts": {str(preference): count for preference, count in one.counts.items()},
        "cases": one.cases,
        "preference": serialize_rate_estimate(one.preference),
        "order_bias": serialize_rate_estimate(one.order_bias),
        "verdict": str(one.verdict),
        "reason": one.reason,
    }


def _serialize_assertion(one: AssertionSummary) -> dict[str, object]:
    return {
        "case_id": one.case_id,
        "text": one.text,
        "arms": {str(arm): _serialize_counts(counts) for arm, counts in one.arms.items()},
        "is_flaky": one.is_flaky,
        "never_discriminates": one.never_discriminates,
    }


def _serialize_counts(counts: VerdictCounts) -> dict[str, int]:
    return {
        "passed": counts.passed,
        "failed": counts.failed,
        "not_judged": counts.not_judged,
    }


def _serialize_spread(spread: Spread | None) -> Mapping[str, float] | None:
    return None if spread is None else spread._asdict()


def _iter_graded_runs(iteration: EvalIteration) -> Iterator[GradedRun]:
    graded = (read_graded_run(iteration, stored) for stored in iteration.iter_runs())
    return (one for one in graded if one is not None)


def _iter_comparisons(iteration: EvalIteration, baseline: Arm) -> Iterator[PairComparison]:
    keys = (one.record.key for one in iteration.iter_runs())
    found = (read_comparison(iteration, key) for key in keys if key.arm is baseline)
    return (one for one in found if one is not None)
