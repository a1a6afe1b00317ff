"""Measures processes in interleaved rounds and computes ratios.

Each round runs every contender once, so that a slow moment of the machine affects all of them. A
ratio is the median, over the rounds, of a contender's value divided by the baseline's value in
the same round. POSIX only.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import IO

DEFAULT_ROUNDS = 7
DISCARDED_ROUNDS = 1  # the first fills the page cache and writes bytecode
MAXRSS_UNITS_PER_MB = (
    1e6 if sys.platform == "darwin" else 1e6 / 1024
)  # macOS reports bytes, Linux KiB
STDERR_SHOWN = 2000
# Linux counts the peak memory of the process that starts a command as the command's own, so a
# small process starts it and reports wall time, CPU time, peak memory and status.
LAUNCHER = """\
import os, sys, time
report = int(sys.argv[1])
os.set_inheritable(report, False)
started = time.perf_counter()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - started
os.write(report, f"{wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss} {status}".encode())
"""


class BenchmarkError(Exception):
    """A command of a benchmark could not be run."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A command to measure. Short commands are repeated within a round for a stable mean."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 1
    first_line: bytes = b""  # sent to stdin; the process is measured until it answers, then ended
    exit_codes: tuple[int, ...] = (0,)  # others are failures
    folder: str | None = None  # the working directory


@dataclass(frozen=True, slots=True)
class Sample:
    """Cost of one process: wall-clock seconds, CPU seconds, peak memory."""

    wall: float
    cpu: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """The samples of every round, by contender."""

    samples: tuple[Mapping[str, Sample], ...]

    def median(self, figure: Callable[[Mapping[str, Sample]], float]) -> float:
        """Return the median over the rounds of a value computed within each round."""
        return median(figure(samples) for samples in self.samples)

    def wall_ratio(self, name: str, baseline: str) -> float:
        """Wall clock of a contender in units of the baseline's."""
        return self.median(lambda samples: samples[name].wall / samples[baseline].wall)

    def cpu_ratio(self, name: str, baseline: str) -> float:
        """CPU time of a contender in units of the baseline's."""
        return self.median(lambda samples: samples[name].cpu / samples[baseline].cpu)

    def wall(self, name: str) -> float:
        """Median wall clock of a contender, in seconds."""
        return self.median(lambda samples: samples[name].wall)

    def peak_mb(self, name: str) -> float:
        """The highest peak memory of a contender in any round."""
        return max(samples[name].peak_mb for samples in self.samples)


def run_rounds(contenders: Sequence[Contender], rounds: int, label: str) -> Rounds:
    """Measure the contenders in interleaved rounds, after rounds that are discarded."""
    total = rounds + DISCARDED_ROUNDS
    kept = []
    for number in range(total):
        _show_progress(f"{label}: round {number + 1}/{total}")
        samples = _run_round(contenders, number)
        if number >= DISCARDED_ROUNDS:
            kept.append(samples)
    _show_progress("")
    return Rounds(tuple(kept))


def run_to_file(contender: Contender, output: Path) -> Sample:
    """Run a command once with its standard output in a file.

    Raises:
        BenchmarkError: the command cannot be started or fails.
    """
    with tempfile.TemporaryFile() as errors:
        report = _launch(contender, output, errors)
        if not report:
            problem = _read_end(errors)
            raise BenchmarkError(f"{contender.command[0]!r} cannot be started\n{problem}".rstrip())
        wall, cpu, peak, status = map(float, report.split())
        code = os.waitstatus_to_exitcode(int(status))
        if code not in contender.exit_codes:
            failure = f"{' '.join(contender.command)!r} ended with {code}\n{_read_end(errors)}"
            raise BenchmarkError(failure.rstrip())
    return Sample(wall, cpu, peak / MAXRSS_UNITS_PER_MB)


def run_until_answer(contender: Contender) -> Sample:
    """Start a command, send its first line and measure it until it answers with a line.

    Raises:
        BenchmarkError: the command cannot be started or does not answer.
    """
    environment = _build_environment(contender)
    started = time.perf_counter()
    with subprocess.Popen(
        contender.command,
        cwd=contender.folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        process.stdin.write(contender.first_line)
        process.stdin.flush()
        answer = process.stdout.readline()
        # Resource usage would include what follows.
        cpu = read_cpu_time(process.pid)
        wall = time.perf_counter() - started
        process.kill()
    if not answer:
        raise BenchmarkError(f"{contender.name!r} does not answer")
    return Sample(wall, cpu, 0.0)


def read_cpu_time(process: int) -> float:
    """Return the seconds that all threads of a process were on a CPU, on Linux."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(one.read_text(encoding="ascii").split()[0]) for one in threads) / 1e9


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _run_round(contenders: Sequence[Contender], number: int) -> dict[str, Sample]:
    # The order rotates: each contender leaves its own data in the CPU and page caches.
    first = number % len(contenders)
    order = (*contenders[first:], *contenders[:first])
    return {contender.name: _measure(contender) for contender in order}


def _measure(contender: Contender) -> Sample:
    if contender.first_line:
        samples = [run_until_answer(contender) for _ in range(contender.repeat)]
    else:
        samples = [run_to_file(contender, Path(os.devnull)) for _ in range(contender.repeat)]
    return Sample(
        wall=fmean(sample.wall for sample in samples),
        cpu=fmean(sample.cpu for sample in samples),
        peak_mb=max(sample.peak_mb for sample in samples),
    )


def _launch(contender: Contender, output: Path, errors: IO[bytes]) -> bytes:
    """Run a command by `LAUNCHER`; return its report, or nothing if it cannot be started."""
    reader, writer = os.pipe()
    launcher = (sys.executable, "-I", "-S", "-c", LAUNCHER, str(writer))
    with os.fdopen(reader, "rb") as report, output.open("wb") as out:
        process = subprocess.Popen(
            (*launcher, *contender.command),
            cwd=contender.folder,
            env=_build_environment(contender),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            pass_fds=(writer,),
        )
        os.close(writer)
        process.wait()
        return report.read()


def _build_environment(contender: Contender) -> dict[str, str]:
    inherited = {**os.environ}
    # Without bytecode, each command would compile its modules, which users never wait for.
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**inherited, **contender.environment}


def _read_end(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read()[-STDERR_SHOWN:].decode("utf-8", "replace").strip()
