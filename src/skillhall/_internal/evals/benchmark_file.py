"""The documented `benchmark.json`: mean and standard deviation of each arm.

It also has the difference between the arms. Numbers are rounded as in the agentskills.io guide.
`summary.json` has the unrounded ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.eval_summary import ArmSummary, EvalSummary, Spread

BENCHMARK_FILE = "benchmark.json"
_DECIMALS = {"pass_rate": 2, "time_seconds": 1, "tokens": 0}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The content of a `benchmark.json`: metrics by arm, and their differences."""

    arms: Mapping[str, Mapping[str, Spread]]
    delta: Mapping[str, float]


def build_benchmark(summary: EvalSummary) -> Benchmark:
    """Return the benchmark of a summary.

    The difference is to the arm without the skill or, if there is none, to the old version.
    """
    arms = {str(arm.arm): _list_metrics(arm) for arm in summary.arms}
    skill = arms.get(Arm.WITH_SKILL, {})
    baseline = arms.get(Arm.WITHOUT_SKILL) or arms.get(Arm.OLD_SKILL) or {}
    delta = {
        metric: skill[metric].mean - baseline[metric].mean
        for metric in _DECIMALS
        if metric in skill and metric in baseline
    }
    return Benchmark(arms, delta)


def render_benchmark(benchmark: Benchmark) -> bytes:
    """Return the content of `benchmark.json`, in the layout of the guide."""
    sections = [_render_arm(arm, metrics) for arm, metrics in benchmark.arms.items()]
    if benchmark.delta:
        lines = (
            f'      "{metric}": {_format(metric, value)}'
            for metric, value in benchmark.delta.items()
        )
        sections.append('    "delta": {\n' + ",\n".join(lines) + "\n    }")
    return ('{\n  "run_summary": {\n' + ",\n".join(sections) + "\n  }\n}\n").encode()


def _list_metrics(arm: ArmSummary) -> dict[str, Spread]:
    metrics = {
        "pass_rate": arm.run_pass_rate,
        "time_seconds": arm.seconds,
        "tokens": arm.tokens,
    }
    return {metric: spread for metric, spread in metrics.items() if spread is not None}


def _render_arm(arm: str, metrics: Mapping[str, Spread]) -> str:
    lines = (
        f'      "{metric}": {{ "mean": {_format(metric, spread.mean)}, '
        f'"stddev": {_format(metric, spread.stddev)} }}'
        for metric, spread in metrics.items()
    )
    return f'    "{arm}": {{\n' + ",\n".join(lines) + "\n    }"


def _format(metric: str, value: float) -> str:
    rounded = round(value, _DECIMALS[metric]) + 0.0  # turns -0.0 into 0.0
    return f"{rounded:.{_DECIMALS[metric]}f}"
