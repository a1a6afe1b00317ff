"""The numbers of an eval, from verdicts to intervals."""

import pytest

from skillhall._internal.evals.eval_aggregation import summarize
from skillhall._internal.evals.eval_records import Arm, RunStatus
from skillhall._internal.evals.eval_summary import ArmVerdict
from tests.support.eval_verdicts import HARMS, HELPS, NOTHING, SUBJECT, grade, summarize_cases


@pytest.mark.parametrize(
    ("case", "other", "verdict"),
    [
        (HELPS, ("p p p", "f f f"), ArmVerdict.BETTER),
        (NOTHING, ("p p f", "p f f"), ArmVerdict.UNCLEAR),
        (HARMS, ("f f f", "p p p"), ArmVerdict.WORSE),
    ],
)
def test_skill_that_helps_and_one_that_harms_have_other_verdicts(
    case: tuple[str, str], other: tuple[str, str], verdict: ArmVerdict
) -> None:
    (difference,) = summarize_cases(case, case, other, other, case, other).differences

    assert difference.verdict is verdict
    assert difference.cases == 6
    assert difference.interval is not None
    assert difference.difference is not None
    assert difference.interval.low <= difference.difference <= difference.interval.high


def test_difference_is_paired_by_case() -> None:
    # The cases differ a lot, but the skill improves each of them by about a third.
    cases = [("f f p", "f f f"), ("p p f", "f p f"), ("p p p", "f p p"), ("f p f", "f f f")]
    (difference,) = summarize_cases(*cases, ("p p p", "p p p"), ("p p f", "p f f")).differences

    assert difference.difference == pytest.approx(5 / 18)
    assert difference.verdict is ArmVerdict.BETTER


@pytest.mark.parametrize(
    ("cases", "repeats", "reason"),
    [
        (4, 3, "not enough runs: 4 of at least 5 cases have results"),
        (5, 2, "not enough runs: 0 of at least 5 cases have 3 repeats"),
    ],
)
def test_small_samples_have_no_verdict(cases: int, repeats: int, reason: str) -> None:
    (difference,) = summarize_cases(*[HELPS] * cases, repeats=repeats).differences

    assert difference.verdict is ArmVerdict.NOT_ENOUGH_RUNS
    assert difference.reason == reason


def test_arm_has_counts_and_an_interval_over_cases() -> None:
    arm = summarize_cases(("ppf ppf ppf", "f f f"), ("p n p", "f f f")).find_arm(Arm.WITH_SKILL)

    assert arm is not None
    assert (arm.runs, arm.completed, arm.cases) == (6, 6, 2)
    assert (arm.assertions.passed, arm.assertions.failed, arm.assertions.not_judged) == (8, 3, 1)
    assert arm.pass_rate is not None
    assert arm.pass_rate.value == pytest.approx((2 / 3 + 1) / 2)
    assert arm.pass_rate.interval.high - arm.pass_rate.interval.low > 0.6
    assert arm.tokens is not None
    assert arm.tokens.mean == 210
    assert arm.usage.cost == pytest.approx(0.06)


def test_pass_at_k_counts_cases_with_all_repeats() -> None:
    arm = summarize_cases(("p f f", "f"), ("p p p", "f"), ("p p n", "f")).find_arm(Arm.WITH_SKILL)

    assert arm is not None
    assert arm.pass_at == pytest.approx((2 / 3, 5 / 6, 1.0))
    assert arm.pass_hat == pytest.approx((2 / 3, 0.5, 0.5))


def test_flaky_and_useless_assertions_are_found() -> None:
    summary = summarize_cases(("ppf pff ppf", "pff pff pff"))

    assert [one.is_flaky for one in summary.assertions] == [False, True, False]
    assert [one.never_discriminates for one in summary.assertions] == [True, False, True]


def test_assertion_of_one_arm_is_not_called_useless() -> None:
    summary = summarize([grade("c", Arm.WITH_SKILL, 1, "p")], SUBJECT)

    assert not summary.assertions[0].never_discriminates
    assert summary.differences == ()


def test_runs_that_were_not_judged_have_no_rate() -> None:
    runs = [
        grade("c", Arm.WITH_SKILL, 1, "n", RunStatus.FAILED),
        grade("c", Arm.WITHOUT_SKILL, 1, "p"),
    ]
    summary = summarize(runs, SUBJECT)

    assert summary.arms[0].pass_rate is None
    assert summary.differences[0].difference is None
    assert summary.cases[0].pass_rates == {Arm.WITHOUT_SKILL: 1.0}
