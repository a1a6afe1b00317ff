"""Runs of evals: the overhead over the time of a scripted model, and the memory.

The model is a process of its own that takes the time of a fast hosted model. Overhead is what the
command adds: start-up, folders, requests, files.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness import BenchmarkError, Contender, Sample, run_to_file
from benchmarks.plan import SCALES, Plan
from benchmarks.report import Bar, Judged, Report, Row
from tests.support.eval_skills import make_case, make_eval_skill

CASES, SMALL_CASES = 200, 20
REPEATS, ARMS = 3, 2
JOBS = 16
OVERHEAD = 0.05
MEMORY_GROWTH = 1.2
_TABLE = b"amount,price\n" + b"12,30\n" * 200
_BODY = "Read the table, check every field, and write the total to a file. " * 60


class _Measured(NamedTuple):
    """The cost of a command, and the seconds that the model took for its requests."""

    sample: Sample
    model_seconds: float
    requests: int


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report: a tenth of the runs, then all."""
    cases = CASES if plan.scale == SCALES["full"] else SMALL_CASES
    small = _measure(plan, cases // 10)
    large = _measure(plan, cases)
    runs = cases * REPEATS * ARMS
    rows = (
        Row(
            name=f"{runs:,} runs, {JOBS} at a time",
            wall=large.sample.wall * JOBS / large.model_seconds,
            bar=Bar(1 + OVERHEAD, Judged.WALL),
        ),
        Row(
            name="CPU time, of the model's time",
            cpu=large.sample.cpu / large.model_seconds,
            bar=Bar(OVERHEAD, Judged.CPU),
        ),
        Row(
            name=f"memory, against {runs // 10:,} runs",
            peak_mb=large.sample.peak_mb,
            bar=Bar(small.sample.peak_mb * MEMORY_GROWTH, Judged.MEMORY),
        ),
        Row(
            name="each run",
            median_ms=large.sample.wall * 1000 * JOBS / runs,
        ),
        Row(
            name="each run, CPU time after the start-up",
            median_ms=(large.sample.cpu - small.sample.cpu) * 1000 / (runs - runs // 10),
        ),
    )
    seconds = f"{large.model_seconds:,.0f} seconds of the model"
    yield Report(f"eval run: {large.requests:,} requests, {seconds}", rows)


def _measure(plan: Plan, cases: int) -> _Measured:
    """Run the cases once. Raises: BenchmarkError."""
    with TemporaryDirectory() as folder:
        skill = make_eval_skill(
            Path(folder),
            [
                make_case(str(number), f"Sum column {number}.", files=["evals/files/table.csv"])
                for number in range(cases)
            ],
            body=_BODY,
            files={"evals/files/table.csv": _TABLE},
        )
        command = (str(plan.executable), "eval", "run", str(skill), "--jobs", str(JOBS))
        with subprocess.Popen(
            (sys.executable, "-m", "benchmarks.eval_model"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as model:
            if model.stdin is None or model.stdout is None:
                raise AssertionError
            environment = {
                "OPENAI_BASE_URL": f"http://127.0.0.1:{model.stdout.readline().strip()}/v1",
                "OPENAI_API_KEY": "none",
            }
            arguments = (*command, "--model", "openai-chat:scripted")
            contender = Contender("eval run", arguments, environment)
            try:
                sample = run_to_file(contender, Path(os.devnull))
            finally:
                model.stdin.close()
            result = json.loads(model.stdout.readline())
    expected = cases * REPEATS * 5  # three requests with the skill, two without it
    if result["requests"] != expected:
        raise BenchmarkError(f"{result['requests']} requests instead of {expected}")
    return _Measured(sample, result["seconds"], result["requests"])
