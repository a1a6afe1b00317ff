"""Aggregation of graded runs: rates per arm, differences, verdicts of assertions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm, RunStatus, RunUsage, Verdict, add_usages
from skillhall._internal.evals.eval_summary import (
    ArmDifference,
    ArmSummary,
    ArmVerdict,
    AssertionSummary,
    CaseSummary,
    EvalSummary,
    RateEstimate,
    Spread,
    VerdictCounts,
)
from skillhall._internal.evals.statistics import (
    bootstrap_interval,
    estimate_pass_at_k,
    estimate_pass_hat_k,
    explain_small_sample,
    wilson_interval,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.evals.eval_records import GradedRun
    from skillhall._internal.evals.eval_summary import EvalSubject


def summarize(graded_runs: Iterable[GradedRun], subject: EvalSubject) -> EvalSummary:
    """Return the summary of the runs, in any order. Does not keep their replies."""
    by_arm: defaultdict[Arm, _ArmRuns] = defaultdict(_ArmRuns)
    for graded in graded_runs:
        by_arm[graded.run.key.arm].add(graded)
    arms = {arm: by_arm[arm] for arm in Arm if arm in by_arm}
    baselines = [arm for arm in arms if arm is not Arm.WITH_SKILL]
    case_rates = {arm: runs.case_rates() for arm, runs in arms.items()}
    case_ids = sorted({case_id for runs in arms.values() for case_id in runs.case_ids})
    judges = sorted(set[str]().union(*(runs.judges for runs in arms.values())))
    return EvalSummary(
        subject=replace(subject, judge=", ".join(judges)),
        arms=tuple(runs.summarize(arm, subject.repeats) for arm, runs in arms.items()),
        differences=tuple(
            compare_cases(
                (Arm.WITH_SKILL, arms[Arm.WITH_SKILL].run_rates),
                (baseline, arms[baseline].run_rates),
            )
            for baseline in (baselines if Arm.WITH_SKILL in arms else ())
        ),
        cases=tuple(
            CaseSummary(
                case_id=case_id,
                pass_rates={
                    arm: rates[case_id] for arm, rates in case_rates.items() if case_id in rates
                },
            )
            for case_id in case_ids
        ),
        assertions=_summarize_assertions(arms),
    )


def compare_cases(
    side: tuple[Arm, Mapping[str, Sequence[float]]],
    baseline: tuple[Arm, Mapping[str, Sequence[float]]],
) -> ArmDifference:
    """Return the difference between two arms, given the pass rates of runs by case."""
    (arm, rates), (baseline_arm, baseline_rates) = side, baseline
    paired = sorted(set(rates) & set(baseline_rates))
    differences = [fmean(rates[one]) - fmean(baseline_rates[one]) for one in paired]
    interval = bootstrap_interval(differences) if differences else None
    repeats = [min(len(rates[one]), len(baseline_rates[one])) for one in paired]
    reason = explain_small_sample(repeats)
    verdict = ArmVerdict.NOT_ENOUGH_RUNS
    if not reason and interval is not None:
        verdict = ArmVerdict.of_interval(interval)
    return ArmDifference(
        arm=arm,
        baseline=baseline_arm,
        cases=len(paired),
        difference=fmean(differences) if differences else None,
        interval=interval,
        verdict=verdict,
        reason=reason,
    )


@dataclass(slots=True)
class _ArmRuns:
    """The facts of the runs of an arm that its summary needs."""

    case_ids: set[str] = field(default_factory=set)
    run_rates: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    outcomes: defaultdict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    counts: defaultdict[tuple[str, str], list[Verdict]] = field(
        default_factory=lambda: defaultdict(list)
    )
    statuses: list[RunStatus] = field(default_factory=list)
    usages: list[RunUsage] = field(default_factory=list)
    judge_usages: list[RunUsage] = field(default_factory=list)
    judges: set[str] = field(default_factory=set)

    def add(self, graded: GradedRun) -> None:
        run, case_id = graded.run, graded.run.key.case_id
        self.case_ids.add(case_id)
        self.statuses.append(run.status)
        self.judge_usages.append(graded.judge_usage)
        self.judges |= {graded.judge} - {""}
        if run.status is not RunStatus.SKIPPED:
            self.usages.append(run.usage)
        for result in graded.results:
            self.counts[case_id, result.text].append(result.verdict)
        if graded.pass_rate is not None:
            self.run_rates[case_id].append(graded.pass_rate)
        if graded.outcome is not None:
            self.outcomes[case_id].append(graded.outcome)

    def case_rates(self) -> dict[str, float]:
        return {case_id: fmean(rates) for case_id, rates in self.run_rates.items()}

    def summarize(self, arm: Arm, repeats: int) -> ArmSummary:
        rates = self.case_rates().values()
        tokens = [one.total_tokens for one in self.usages]
        complete = [one for one in self.outcomes.values() if len(one) >= repeats]
        sizes = range(1, repeats + 1) if complete else ()
        estimate = (
            RateEstimate(fmean(rates), wilson_interval(sum(rates), len(rates))) if rates else None
        )
        return ArmSummary(
            arm=arm,
            runs=len(self.statuses),
            statuses={one: self.statuses.count(one) for one in RunStatus if one in self.statuses},
            assertions=count_verdicts(one for verdicts in self.counts.values() for one in verdicts),
            cases=len(rates),
            pass_rate=estimate,
            shortage=explain_small_sample([len(one) for one in self.run_rates.values()]),
            pass_at=tuple(
                fmean(estimate_pass_at_k(sum(one), len(one), k) for one in complete) for k in sizes
            ),
            pass_hat=tuple(
                fmean(estimate_pass_hat_k(sum(one), len(one), k) for one in complete) for k in sizes
            ),
            run_pass_rate=_spread([rate for rates in self.run_rates.values() for rate in rates]),
            seconds=_spread([one.duration_ms / 1000 for one in self.usages]),
            tokens=_spread(tokens) if any(tokens) else None,  # external agents report none
            usage=add_usages(self.usages),
            judge_usage=add_usages(self.judge_usages),
        )


def count_verdicts(verdicts: Iterable[Verdict]) -> VerdictCounts:
    """Return the number of each verdict."""
    found = [*verdicts]
    return VerdictCounts(
        passed=found.count(Verdict.PASSED),
        failed=found.count(Verdict.FAILED),
        not_judged=found.count(Verdict.NOT_JUDGED),
    )


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0)


def _summarize_assertions(arms: Mapping[Arm, _ArmRuns]) -> tuple[AssertionSummary, ...]:
    keys = dict.fromkeys(key for runs in arms.values() for key in runs.counts)
    return tuple(
        AssertionSummary(
            case_id=case_id,
            text=text,
            arms={
                arm: count_verdicts(runs.counts[case_id, text])
                for arm, runs in arms.items()
                if (case_id, text) in runs.counts
            },
        )
        for case_id, text in sorted(keys, key=lambda key: key[0])
    )
