"""Gates: conditions on eval results, such as `pass_rate>=0.8, delta>=0.1`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.evals.eval_records import Arm, add_usages
from skillhall._internal.evals.eval_summary import ArmVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.evals.eval_summary import ArmSummary, EvalSummary, RateEstimate
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult
    from skillhall._internal.evals.triggers.trigger_score import TriggerRate

MIN_JUDGED = 0.9  # share of assertions, unless a gate on `judged` says otherwise

METRICS: Mapping[str, str] = {
    "pass_rate": "pass rate with the skill",
    "pass_rate.low": "lower end of its interval",
    "delta": "difference from the pass rate without the skill",
    "delta.low": "lower end of its interval",
    "delta.old": "difference from the pass rate of the old version",
    "delta.old.low": "lower end of its interval",
    "pass_at_k": "share of cases that at least one repeat solves",
    "pass_hat_k": "share of cases that all repeats solve",
    "preference": "preference in blind comparisons with the arm without the skill, from -1 to 1",
    "preference.low": "lower end of its interval",
    "judged": "share of assertions with a verdict",
    "completed": "share of runs with the skill that completed",
    "flaky": "number of assertions that are flaky with the skill",
    "tokens": "mean tokens of a run with the skill",
    "seconds": "mean seconds of a run with the skill",
    "cost": "cost of all runs and of the judge, in US dollars",
    "triggers.recall": "share of queries that should load the skill and do",
    "triggers.recall.low": "lower end of its interval",
    "triggers.precision": "share of queries that load the skill and should",
    "triggers.precision.low": "lower end of its interval",
    "triggers.false_triggers": "share of queries that should not load the skill and do",
    "triggers.false_triggers.high": "upper end of its interval",
}
# Metrics that missing verdicts could distort.
_RATES = ("pass_rate", "delta", "pass_at_k", "pass_hat_k")
_TRIGGERS = "triggers."
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_GATE = re.compile(r"([a-z_.]+)\s*(>=|<=|>|<)\s*(-?[0-9]{1,12}(?:\.[0-9]{1,12})?)(%?)")
_TOLERANCE = 1e-9  # 0.1 + 0.2 >= 0.3

# The value of each metric, or why it has none.
MetricValues: TypeAlias = Mapping[str, float | str]


class InvalidGate(ValueError):
    """A gate that cannot be parsed. The message says why."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on a metric."""

    metric: str
    comparison: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.metric}{self.comparison}{self.threshold:g}"


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a gate passed, and the value or the reason why there is none."""

    gate: Gate
    passed: bool
    value: float | None
    reason: str = ""

    def __str__(self) -> str:
        found = self.reason if self.value is None else f"{self.gate.metric} is {self.value:.4g}"
        return f"{self.gate}: {'passed' if self.passed else 'failed'}: {found}"


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Parse gates that are separated by commas. Raises: InvalidGate."""
    gates = tuple(_parse_gate(part.strip()) for part in text.split(",") if part.strip())
    if not gates:
        raise InvalidGate("the value is empty; write a gate such as pass_rate>=0.8")
    return gates


def evaluate_gates(gates: Sequence[Gate], values: MetricValues) -> tuple[GateResult, ...]:
    """Return the result of each gate. A metric without a value fails its gate."""
    has_judged_gate = any(gate.metric == "judged" for gate in gates)
    return tuple(_evaluate(gate, values, needs_verdicts=not has_judged_gate) for gate in gates)


def collect_metrics(summary: EvalSummary) -> dict[str, float | str]:
    """Return the metrics of a summary, which has none of triggers."""
    skill = summary.find_arm(Arm.WITH_SKILL)
    if skill is None:
        return {}
    values: dict[str, float | str] = {
        **_collect_pass_rate(skill),
        **_collect_differences(summary),
        **_collect_preference(summary),
        "flaky": sum(one.is_flaky_in(Arm.WITH_SKILL) for one in summary.assertions),
    }
    total = sum(arm.assertions.total for arm in summary.arms)
    if total:
        values["judged"] = sum(arm.assertions.judged for arm in summary.arms) / total
    if skill.runs:
        values["completed"] = skill.completed / skill.runs
    if skill.tokens is not None and skill.seconds is not None:
        values["tokens"], values["seconds"] = skill.tokens.mean, skill.seconds.mean
    cost = add_usages([*(arm.usage for arm in summary.arms), summary.judge_usage]).cost
    values["cost"] = "the price is not known" if cost is None else cost
    return values


def collect_trigger_metrics(result: TriggerResult | None, skill_digest: str) -> MetricValues:
    """Return the metrics of a trigger result about this version of the skill.

    If there is none, the metrics have the reason.
    """
    names = [metric for metric in METRICS if metric.startswith(_TRIGGERS)]
    if result is None:
        return dict.fromkeys(names, "'eval triggers' has not been run")
    if result.skill_digest != skill_digest:
        return dict.fromkeys(names, "'eval triggers' was run with another version of the skill")
    score = result.score
    if score.shortage:
        return dict.fromkeys(names, f"not enough runs: {score.shortage}")
    values: dict[str, float | str] = {}
    for name in ("recall", "precision", "false_triggers"):
        rate: TriggerRate = getattr(score, name)
        if rate.value is not None:
            values |= {
                f"{_TRIGGERS}{name}": rate.value,
                f"{_TRIGGERS}{name}.low": rate.interval.low,
                f"{_TRIGGERS}{name}.high": rate.interval.high,
            }
    return values


def serialize_gate(result: GateResult) -> dict[str, object]:
    """Return the result of a gate for JSON output."""
    return {
        "gate": str(result.gate),
        "passed": result.passed,
        "value": result.value,
        "reason": result.reason,
    }


def _parse_gate(text: str) -> Gate:
    match = _GATE.fullmatch(text)
    if match is None:
        raise InvalidGate(f"{text[:100]!r} is not a gate; write one such as pass_rate>=0.8")
    metric, comparison, number, percent = match.groups()
    if metric not in METRICS:
        raise InvalidGate(f"unknown metric {metric[:100]!r}; use one of: {', '.join(METRICS)}")
    return Gate(metric, comparison, float(number) / (100 if percent else 1))


def _evaluate(gate: Gate, values: MetricValues, *, needs_verdicts: bool) -> GateResult:
    value = values.get(gate.metric, "there is no result for this metric")
    judged = values.get("judged")
    is_rate = gate.metric.split(".")[0] in _RATES
    if needs_verdicts and is_rate and isinstance(judged, float) and judged < MIN_JUDGED:
        value = f"only {judged:.0%} of the assertions were judged"
    if isinstance(value, str):
        return GateResult(gate, passed=False, value=None, reason=value)
    slack = -_TOLERANCE if gate.comparison in {">", "<"} else _TOLERANCE
    slack = slack if gate.comparison.startswith(">") else -slack
    passed = _OPERATORS[gate.comparison](value + slack, gate.threshold)
    return GateResult(gate, passed=passed, value=value)


def _collect_pass_rate(skill: ArmSummary) -> dict[str, float | str]:
    if skill.shortage:
        metrics = ("pass_rate", "pass_rate.low", "pass_at_k", "pass_hat_k")
        return dict.fromkeys(metrics, skill.shortage)
    values = _name_estimate("pass_rate", skill.pass_rate)
    if skill.pass_at:
        values |= {"pass_at_k": skill.pass_at[-1], "pass_hat_k": skill.pass_hat[-1]}
    return values


def _collect_differences(summary: EvalSummary) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    names = {Arm.WITHOUT_SKILL: "delta", Arm.OLD_SKILL: "delta.old"}
    for one in summary.differences:
        name = names[one.baseline]
        if one.verdict is ArmVerdict.NOT_ENOUGH_RUNS:
            values |= {name: one.reason, f"{name}.low": one.reason}
        elif one.difference is not None and one.interval is not None:
            values |= {name: one.difference, f"{name}.low": one.interval.low}
    return values


def _collect_preference(summary: EvalSummary) -> dict[str, float | str]:
    for one in summary.preferences:
        if one.baseline is Arm.WITHOUT_SKILL:
            if one.verdict is ArmVerdict.NOT_ENOUGH_RUNS:
                return dict.fromkeys(("preference", "preference.low"), one.reason)
            return _name_estimate("preference", one.preference)
    return {}


def _name_estimate(name: str, estimate: RateEstimate | None) -> dict[str, float | str]:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}.low": estimate.interval.low}
