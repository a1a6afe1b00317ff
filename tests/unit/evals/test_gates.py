"""Gates: parsing, values and their absence."""

from dataclasses import replace

import pytest

from skillhall._internal.evals.eval_records import Arm, RunUsage
from skillhall._internal.evals.eval_summary import ArmVerdict
from skillhall._internal.evals.gates import (
    Gate,
    InvalidGate,
    MetricValues,
    collect_metrics,
    collect_trigger_metrics,
    evaluate_gates,
    parse_gates,
)
from skillhall._internal.evals.preference_summary import PreferenceSummary
from tests.support.eval_results import DIGEST, make_trigger_result
from tests.support.eval_verdicts import HARMS, HELPS, summarize_cases


def test_gates_are_separated_by_commas() -> None:
    gates = parse_gates(" pass_rate >= 0.8,delta>-0.1 , triggers.recall>=90%,")

    assert gates == (
        Gate("pass_rate", ">=", 0.8),
        Gate("delta", ">", -0.1),
        Gate("triggers.recall", ">=", 0.9),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the value is empty"),
        ("pass_rate", "'pass_rate' is not a gate; write one such as pass_rate>=0.8"),
        ("pass_rate=0.8", "is not a gate"),
        ("pass_rate>=high", "is not a gate"),
        ("pass_rate>=0.8 delta>=0.1", "is not a gate"),
        ("quality>=1", "unknown metric 'quality'; use one of: pass_rate, pass_rate.low"),
        ("pass_rate>=" + "9" * 5000, "is not a gate"),
    ],
)
def test_invalid_gate_is_explained(text: str, message: str) -> None:
    with pytest.raises(InvalidGate, match=message):
        parse_gates(text)


@pytest.mark.parametrize(
    ("gate", "passed"),
    [
        ("pass_rate>=0.8", True),
        ("pass_rate>0.8", False),
        ("pass_rate<=0.8", True),
        ("pass_rate<0.8", False),
        ("pass_rate>=80.1%", False),
        ("delta>=0.3", True),  # 0.1 + 0.2
        ("delta>0.3", False),
        ("delta<=0.3", True),
    ],
)
def test_gate_compares_its_metric(gate: str, passed: bool) -> None:
    values: MetricValues = {"pass_rate": 0.8, "delta": 0.1 + 0.2}
    (result,) = evaluate_gates(parse_gates(gate), values)

    assert result.passed is passed


def test_metric_without_a_value_fails_with_the_reason() -> None:
    values: MetricValues = {"delta": "not enough runs: 3 of at least 5 cases have results"}
    delta, recall = evaluate_gates(parse_gates("delta>=0, triggers.recall>=0"), values)

    assert str(delta) == ("delta>=0: failed: not enough runs: 3 of at least 5 cases have results")
    assert str(recall) == "triggers.recall>=0: failed: there is no result for this metric"


def test_rates_need_verdicts_unless_a_gate_says_otherwise() -> None:
    values: MetricValues = {"pass_rate": 1.0, "delta.low": 0.5, "tokens": 1.0, "judged": 0.5}
    results = evaluate_gates(parse_gates("pass_rate>=0.8, delta.low>0, tokens<5"), values)
    explicit = evaluate_gates(parse_gates("pass_rate>=0.8, judged>=0.4"), values)

    assert [one.passed for one in results] == [False, False, True]
    assert results[0].reason == "only 50% of the assertions were judged"
    assert [one.passed for one in explicit] == [True, True]


def test_metrics_of_a_summary() -> None:
    values = collect_metrics(summarize_cases(*[HELPS] * 6))

    assert values["pass_rate"] == 1.0
    assert values["delta"] == pytest.approx(2 / 3)
    assert values["pass_hat_k"] == 1.0
    assert (values["judged"], values["completed"], values["flaky"]) == (1.0, 1.0, 0)
    assert values["tokens"] == 210
    assert values["cost"] == pytest.approx(0.36)
    assert "preference" not in values


def test_only_assertions_that_are_flaky_with_the_skill_count() -> None:
    assert collect_metrics(summarize_cases(HARMS, *[HELPS] * 5))["flaky"] == 1


def test_cost_contains_blind_comparisons() -> None:
    summary = summarize_cases(*[HELPS] * 6)
    compared = PreferenceSummary(
        baseline=Arm.WITHOUT_SKILL,
        counts={},
        cases=0,
        preference=None,
        order_bias=None,
        verdict=ArmVerdict.NOT_ENOUGH_RUNS,
        usage=RunUsage(requests=2, cost=1.0),
    )
    values = collect_metrics(replace(summary, preferences=(compared,)))
    assert values["cost"] == pytest.approx(1.36)


def test_metrics_of_triggers_have_the_end_of_the_interval_that_matters() -> None:
    values = collect_trigger_metrics(make_trigger_result(), DIGEST)

    assert values["triggers.recall.low"] == pytest.approx(0.6097, abs=1e-4)
    assert values["triggers.false_triggers.high"] == pytest.approx(0.3903, abs=1e-4)
    (gate,) = evaluate_gates(parse_gates("triggers.false_triggers.high<=0.4"), values)
    assert gate.passed


def test_small_sample_has_no_rates_but_counts() -> None:
    values = collect_metrics(summarize_cases(*[HELPS] * 4))

    reason = "not enough runs: 4 of at least 5 cases have results"
    assert {values["pass_rate"], values["delta.low"], values["pass_at_k"]} == {reason}
    assert values["tokens"] == 210
