"""Requests per second of our server against a bare Starlette route with the same bytes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.harness import BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row

ROOT = Path(__file__).resolve().parents[1]
PROMPTS = 15_000
CONNECTIONS = 16
SECONDS = 3  # of each measurement
DEADLINE = 60
OURS, BARE = "skillhall", "starlette"

# Both are told what to serve by name, and say at which port they do.
SERVER = """
import sys
from benchmarks.serving_apps import serve
serve(sys.argv[1], int(sys.argv[2]))
"""


class Load(NamedTuple):
    """One kind of request."""

    name: str
    path: str
    bar: Bar
    script: str = ""  # of wrk, in Lua


def loads(tag: str) -> list[Load]:
    """The requests that are measured."""
    known = f"wrk.headers[\"If-None-Match\"] = '{tag}'"
    return [
        Load("list", "/api/v1/prompts", Bar(0.70, Judged.RATE)),
        Load("get one", "/api/v1/prompts/prompt-7", Bar(0.70, Judged.RATE), 'wrk.method = "POST"'),
        Load("list, not changed", "/api/v1/prompts", Bar(0.90, Judged.RATE), known),
    ]


def run(plan: Plan) -> Iterator[Report]:
    """The report on serving."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("serving: skipped, there is no wrk; on Debian: apt install wrk", file=sys.stderr)
        return
    with _served(OURS) as ours, _served(BARE) as bare:
        rows = [_row(wrk, load, ours, bare, plan.rounds) for load in loads(_tag(ours))]
    yield Report(f"requests per second, {PROMPTS} prompts, against a bare route", tuple(rows))


def _row(wrk: str, load: Load, ours: int, bare: int, rounds: int) -> Row:
    pairs = [(_rate(wrk, load, ours), _rate(wrk, load, bare)) for _ in range(rounds)]
    ratio = median(mine / theirs for mine, theirs in pairs)
    each = 1e3 / median(mine for mine, _ in pairs)
    return Row(name=load.name, rate=ratio, median_ms=each, bar=load.bar)


def _rate(wrk: str, load: Load, port: int) -> float:
    command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as script:
        script.write(load.script)
        script.flush()
        command += ["-s", script.name, f"http://127.0.0.1:{port}{load.path}"]
        done = subprocess.run(
            _on_core(1, command), capture_output=True, text=True, check=False, timeout=DEADLINE
        )
    found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
    if done.returncode or not found or "Non-2xx" in done.stdout:
        raise BenchmarkError(f"wrk failed: {done.stdout}{done.stderr}")
    if not float(found[1]):
        raise BenchmarkError("nothing was answered; is the machine busy with something else?")
    return float(found[1])


@contextmanager
def _served(name: str) -> Iterator[int]:
    """The port of a server that runs on the first core."""
    command = [sys.executable, "-c", SERVER, name, str(PROMPTS)]
    with subprocess.Popen(
        _on_core(0, command),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.strip().isdigit():
                raise BenchmarkError(f"the server {name!r} did not start")
            yield int(line)
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _on_core(number: int, command: Sequence[str]) -> list[str]:
    taskset = shutil.which("taskset")
    if taskset is None or (os.cpu_count() or 1) <= number:
        return [*command]
    return [taskset, "-c", str(number), *command]


def _tag(port: int) -> str:
    line = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    line.request("GET", "/api/v1/prompts")
    tag = line.getresponse().headers["ETag"]
    line.close()
    return str(tag)
