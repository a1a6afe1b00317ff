"""`benchmark.json` in the layout of the guide."""

import json

from skillhall._internal.evals.benchmark_file import (
    Benchmark,
    build_benchmark,
    render_benchmark,
)
from skillhall._internal.evals.eval_aggregation import summarize
from skillhall._internal.evals.eval_records import (
    Arm,
    AssertionResult,
    GradedRun,
    RunKey,
    RunRecord,
    RunStatus,
    RunUsage,
    Verdict,
)
from skillhall._internal.evals.eval_summary import EvalSubject, Spread

# The numbers have trailing zeros, as in the guide.
DOCUMENTED = b"""{
  "run_summary": {
    "with_skill": {
      "pass_rate": { "mean": 0.83, "stddev": 0.06 },
      "time_seconds": { "mean": 45.0, "stddev": 12.0 },
      "tokens": { "mean": 3800, "stddev": 400 }
    },
    "without_skill": {
      "pass_rate": { "mean": 0.33, "stddev": 0.10 },
      "time_seconds": { "mean": 32.0, "stddev": 8.0 },
      "tokens": { "mean": 2100, "stddev": 300 }
    },
    "delta": {
      "pass_rate": 0.50,
      "time_seconds": 13.0,
      "tokens": 1700
    }
  }
}
"""


def test_documented_benchmark_is_written_back_byte_for_byte() -> None:
    arms = json.loads(DOCUMENTED)["run_summary"]
    delta = arms.pop("delta")
    spreads = {
        name: {metric: Spread(**spread) for metric, spread in metrics.items()}
        for name, metrics in arms.items()
    }

    assert render_benchmark(Benchmark(spreads, delta)) == DOCUMENTED


def make_run(arm: Arm, repeat: int, passed: int, *, tokens: int = 100) -> GradedRun:
    usage = RunUsage(input_tokens=tokens, duration_ms=1500)
    run = RunRecord(key=RunKey("1", arm, repeat), status=RunStatus.COMPLETED, usage=usage)
    verdicts = [Verdict.PASSED] * passed + [Verdict.FAILED] * (3 - passed)
    results = [
        AssertionResult(text=str(at), verdict=verdict, evidence="", grader="check")
        for at, verdict in enumerate(verdicts)
    ]
    return GradedRun(run=run, results=tuple(results))


def render_runs(*runs: GradedRun) -> str:
    subject = EvalSubject(skill_name="csv", skill_digest="", agent="", repeats=2)
    return render_benchmark(build_benchmark(summarize(runs, subject))).decode()


def test_benchmark_of_runs_has_means_deviations_and_differences() -> None:
    text = render_runs(
        make_run(Arm.WITH_SKILL, 1, 3, tokens=200),
        make_run(Arm.WITH_SKILL, 2, 2, tokens=300),
        make_run(Arm.WITHOUT_SKILL, 1, 1),
        make_run(Arm.WITHOUT_SKILL, 2, 1),
    )

    assert '"with_skill": {\n      "pass_rate": { "mean": 0.83, "stddev": 0.24 },' in text
    assert '"tokens": { "mean": 250, "stddev": 71 }' in text
    assert '"delta": {\n      "pass_rate": 0.50,\n      "time_seconds": 0.0,' in text


def test_benchmark_of_one_arm_has_no_difference() -> None:
    text = render_runs(make_run(Arm.WITH_SKILL, 1, 3))

    assert "delta" not in text
    assert list(json.loads(text)["run_summary"]) == ["with_skill"]


def test_benchmark_compares_with_the_old_version_if_it_is_the_only_other_arm() -> None:
    text = render_runs(make_run(Arm.WITH_SKILL, 1, 1), make_run(Arm.OLD_SKILL, 1, 3))

    assert '"pass_rate": -0.67' in text
