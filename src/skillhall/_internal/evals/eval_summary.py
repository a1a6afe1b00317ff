"""Summary of an eval: rates, differences between arms, noteworthy assertions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import RunStatus, add_usages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.eval_records import Arm, RunUsage
    from skillhall._internal.evals.preference_summary import PreferenceSummary
    from skillhall._internal.evals.statistics import Interval


class ArmVerdict(StrEnum):
    """Whether an arm has a higher pass rate than another one."""

    BETTER = "better"  # the interval of the difference is above 0
    WORSE = "worse"
    UNCLEAR = "unclear"  # the interval contains 0
    NOT_ENOUGH_RUNS = "not_enough_runs"

    @classmethod
    def of_interval(cls, interval: Interval) -> ArmVerdict:
        """Return the verdict about the interval of a difference."""
        if interval.low > 0:
            return cls.BETTER
        return cls.WORSE if interval.high < 0 else cls.UNCLEAR


class Spread(NamedTuple):
    """Mean and sample standard deviation over runs."""

    mean: float
    stddev: float


class RateEstimate(NamedTuple):
    """A rate and its confidence interval."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSubject:
    """The evaluated skill, and the agent and judge of its runs."""

    skill_name: str
    skill_digest: str
    agent: str  # the model, or the command of an external agent
    repeats: int
    judge: str = ""  # the model that judged, or several; "" without one
    is_complete: bool = True  # whether all cases of the skill were planned


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCounts:
    """Numbers of assertion results, by verdict."""

    passed: int = 0
    failed: int = 0
    not_judged: int = 0

    @property
    def judged(self) -> int:
        """The number of assertions that passed or failed."""
        return self.passed + self.failed

    @property
    def total(self) -> int:
        """The number of all results."""
        return self.judged + self.not_judged


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """The results of all runs of one arm.

    `pass_rate` is the mean over cases. Its interval is a Wilson interval with the number of cases
    as the number of trials, since repeats of one case are not independent.
    """

    arm: Arm
    runs: int
    statuses: Mapping[RunStatus, int]
    assertions: VerdictCounts
    cases: int  # with a judged assertion
    pass_rate: RateEstimate | None
    shortage: str  # why there are not enough runs for a verdict; "" if there are
    pass_at: tuple[float, ...]  # pass@1, pass@2, … up to the number of repeats
    pass_hat: tuple[float, ...]  # pass^1, pass^2, …
    run_pass_rate: Spread | None
    seconds: Spread | None
    tokens: Spread | None
    usage: RunUsage  # of all runs; `cost` is None if the price of a run is not known
    judge_usage: RunUsage

    @property
    def completed(self) -> int:
        """The number of runs that completed."""
        return self.statuses.get(RunStatus.COMPLETED, 0)

    @property
    def cost_per_run(self) -> float | None:
        """The mean cost of a run; `None` if a price is not known."""
        done = self.runs - self.statuses.get(RunStatus.SKIPPED, 0)
        return self.usage.cost / done if self.usage.cost is not None and done else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDifference:
    """The difference of two arms' pass rates, paired by case, with its interval.

    The interval is computed by bootstrapping. `difference` and `interval` are set if at least one
    case has results in both arms. `verdict` is `NOT_ENOUGH_RUNS` unless at least `MIN_CASES` cases
    have `MIN_REPEATS` repeats.
    """

    arm: Arm
    baseline: Arm
    cases: int  # with results in both arms
    difference: float | None
    interval: Interval | None
    verdict: ArmVerdict
    reason: str = ""  # why there is no verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionSummary:
    """One assertion of a case, over all its runs."""

    case_id: str
    text: str
    arms: Mapping[Arm, VerdictCounts]

    @property
    def is_flaky(self) -> bool:
        """Whether the verdict differs between the repeats of any arm."""
        return any(map(self.is_flaky_in, self.arms))

    def is_flaky_in(self, arm: Arm) -> bool:
        """Whether the verdict differs between the repeats of this arm."""
        counts = self.arms.get(arm, VerdictCounts())
        return counts.passed > 0 and counts.failed > 0

    @property
    def never_discriminates(self) -> bool:
        """Whether the verdict is the same in all runs of at least two arms."""
        judged = [counts for counts in self.arms.values() if counts.judged]
        return len(judged) > 1 and (
            not any(counts.passed for counts in judged)
            or not any(counts.failed for counts in judged)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One case: its pass rate in each arm, if an assertion was judged."""

    case_id: str
    pass_rates: Mapping[Arm, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSummary:
    """The results of one iteration."""

    subject: EvalSubject
    arms: tuple[ArmSummary, ...]
    differences: tuple[ArmDifference, ...]  # of the skill and each other arm
    cases: tuple[CaseSummary, ...]
    assertions: tuple[AssertionSummary, ...]
    preferences: tuple[PreferenceSummary, ...] = ()  # of blind comparisons

    @property
    def judge_usage(self) -> RunUsage:
        """What the judge used for verdicts and blind comparisons."""
        verdicts = (arm.judge_usage for arm in self.arms)
        return add_usages([*verdicts, *(one.usage for one in self.preferences)])

    def find_arm(self, arm: Arm) -> ArmSummary | None:
        """Return the summary of an arm; `None` if it has no runs."""
        return next((one for one in self.arms if one.arm is arm), None)
