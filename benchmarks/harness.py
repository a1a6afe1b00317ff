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
        try:
            started = time.perf_counter()
            process = _spawn(contender, output, errors)
        except OSError as error:
            message = f"{contender.command[0]!r} cannot be started: {error}"
            raise BenchmarkError(message) from error
        _, status, usage = os.wait4(process, 0)
        wall = time.perf_counter() - started
        if status:
            raise BenchmarkError(_failure(contender, status, errors))
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MAXRSS_UNITS_PER_MB)


def run_until_answer(contender: Contender) -> Sample:
    """Start a command, send its first line and measure it until it answers with a line.

    Raises:
        BenchmarkError: the command cannot be started or does not answer.
    """
    environment = {**os.environ, **contender.environment}
    started = time.perf_counter()
    with subprocess.Popen(
        contender.command,
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
        # Time on the CPU in nanoseconds, of Linux. Resource usage would include what follows.
        schedule = Path(f"/proc/{process.pid}/schedstat")
        cpu = int(schedule.read_text(encoding="ascii").split()[0]) / 1e9
        wall = time.perf_counter() - started
        process.kill()
    if not answer:
        raise BenchmarkError(f"{contender.name!r} does not answer")
    return Sample(wall, cpu, 0.0)


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


def _spawn(contender: Contender, output: Path, errors: IO[bytes]) -> int:
    # Not subprocess: only wait4 returns the resource usage of exactly this child.
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
    ]
    environment = {**os.environ, **contender.environment}
    return os.posix_spawnp(
        contender.command[0], contender.command, environment, file_actions=actions
    )


def _failure(contender: Contender, status: int, errors: IO[bytes]) -> str:
    errors.seek(0)
    said = errors.read()[-STDERR_SHOWN:].decode("utf-8", "replace").strip()
    code = os.waitstatus_to_exitcode(status)
    return f"{' '.join(contender.command)!r} ended with {code}\n{said}".rstrip()
