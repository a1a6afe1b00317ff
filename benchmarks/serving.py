"""Requests per second compared with a bare Starlette route that returns the same bytes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import count
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
PATIENCE = 300  # seconds for a refresh, which shares a core with the requests
TEXT = "Read the file, then say what is in it. " * 128  # 5 KB, like real prompts
OURS, BARE, FOLDER = "skillhall", "starlette", "folder"

# Both servers get the name of what to serve and print their port.
SERVER = """
import sys
from benchmarks.serving_apps import serve, serve_folder
if sys.argv[1] == "folder":
    serve_folder(sys.argv[2])
else:
    serve(sys.argv[1], int(sys.argv[2]))
"""


class Load(NamedTuple):
    """One kind of request."""

    name: str
    path: str
    bar: Bar
    script: str = ""  # of wrk, in Lua


GET = Load("get one", "/api/v1/prompts/prompt-7", Bar(0.70, Judged.RATE), 'wrk.method = "POST"')


def loads(tag: str) -> list[Load]:
    """Return the requests to measure."""
    known = f"wrk.headers[\"If-None-Match\"] = '{tag}'"
    return [
        Load("list", "/api/v1/prompts", Bar(0.70, Judged.RATE)),
        GET,
        Load("list, not changed", "/api/v1/prompts", Bar(0.90, Judged.RATE), known),
    ]


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report on serving."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("serving: skipped, there is no wrk; on Debian: apt install wrk", file=sys.stderr)
        return
    with _served(OURS) as ours, _served(BARE) as bare:
        rows = [_row(wrk, load, ours, bare, plan.rounds) for load in loads(_tag(ours))]
    slow = _refreshed_row(wrk, plan.rounds)
    yield Report(f"requests per second, {PROMPTS} prompts, against a bare route", tuple(rows))
    yield Report(f"p99 of a get while {PROMPTS} skills are read again, against idle", (slow,))


def _row(wrk: str, load: Load, ours: int, bare: int, rounds: int) -> Row:
    pairs = [(_rate(wrk, load, ours), _rate(wrk, load, bare)) for _ in range(rounds)]
    ratio = median(mine / theirs for mine, theirs in pairs)
    each = 1e3 / median(mine for mine, _ in pairs)
    return Row(name=load.name, rate=ratio, median_ms=each, bar=load.bar)


def _refreshed_row(wrk: str, rounds: int) -> Row:
    """Row of the p99 of a GET during constant refreshes, relative to the p99 without any."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for number in range(PROMPTS):
            _write_skill(folder, number)
        with _served(FOLDER, str(folder)) as port:
            _p99(wrk, port)  # warm-up
            pairs = [_pair(wrk, port, folder) for _ in range(rounds)]
    ratio = median(busy / idle for busy, idle in pairs)
    busy_ms = median(busy for busy, _ in pairs)
    return Row(name="get one", wall=ratio, median_ms=busy_ms, bar=Bar(3.0, Judged.WALL))


def _pair(wrk: str, port: int, folder: Path) -> tuple[float, float]:
    idle = _p99(wrk, port)
    with _refreshing(port, folder):
        return _p99(wrk, port), idle


def _write_skill(folder: Path, number: int, told: str = "") -> None:
    """Write one of the skills, or overwrite it with another description."""
    place = folder / f"prompt-{number}"
    place.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {place.name}\ndescription: Number {number} of many. {told}\n---\n"
    (place / "SKILL.md").write_text(head + TEXT, encoding="utf-8")


@contextmanager
def _refreshing(port: int, folder: Path) -> Iterator[None]:
    """Refresh without a pause until the block ends; each refresh finds a changed skill."""
    done, problems = threading.Event(), list[str]()

    def refresh() -> None:
        for number in count():
            try:
                _refresh_changed(port, folder, number % PROMPTS)
            except (BenchmarkError, OSError) as error:
                problems.append(str(error))
            if done.is_set() or problems:
                return

    thread = threading.Thread(target=refresh)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if problems:
        raise BenchmarkError(problems[0])


def _refresh_changed(port: int, folder: Path, number: int) -> None:
    """Change one skill and refresh all of them."""
    _write_skill(folder, number, f"At {time.monotonic_ns()}.")
    before = _tag(port)
    line = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    line.request("POST", "/api/v1/prompts/refresh")
    status = line.getresponse().status
    line.close()
    if status != HTTPStatus.OK or _tag(port) == before:
        raise BenchmarkError(f"a refresh was answered with {status}, or brought nothing")


def _p99(wrk: str, port: int) -> float:
    """Return the 99th percentile of the response times, in milliseconds."""
    told = _measure(wrk, GET, port)
    found = re.search(r"99%\s+([0-9.]+)(us|ms|s)\b", told)
    if not found:
        raise BenchmarkError(f"wrk told no latency: {told}")
    return float(found[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[found[2]]


def _rate(wrk: str, load: Load, port: int) -> float:
    told = _measure(wrk, load, port)
    found = re.search(r"Requests/sec:\s+([0-9.]+)", told)
    if not found or not float(found[1]):
        raise BenchmarkError("nothing was answered; is the machine busy with something else?")
    return float(found[1])


def _measure(wrk: str, load: Load, port: int) -> str:
    """Return the output of wrk for one measurement."""
    command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--latency"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as script:
        script.write(load.script)
        script.flush()
        command += ["-s", script.name, f"http://127.0.0.1:{port}{load.path}"]
        done = subprocess.run(
            _on_core(1, command), capture_output=True, text=True, check=False, timeout=DEADLINE
        )
    if done.returncode or "Non-2xx" in done.stdout:
        raise BenchmarkError(f"wrk failed: {done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def _served(name: str, what: str = str(PROMPTS)) -> Iterator[int]:
    """Start a server on the first core and yield its port."""
    command = [sys.executable, "-c", SERVER, name, what]
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
