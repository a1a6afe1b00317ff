"""Runner of a plan: parallel runs with their own folders, limits, stored results."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import RunRecord, RunStatus
from skillhall._internal.evals.run_agents.run_agent import RunOutcome, RunTask
from skillhall._internal.evals.runs.case_files import collect_output_files, write_input_files
from skillhall._internal.evals.runs.run_limits import RunSpending, SpendingLimitReached
from skillhall._internal.evals.runs.stored_runs import StoredRunIndex, copy_stored_run
from skillhall._internal.evals.runs.transcript import SecretRedactor
from skillhall._internal.fs.write import WritableFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillhall._internal.evals.eval_records import Arm
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.run_agents.run_agent import RunAgent
    from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedRun

DEFAULT_JOBS = 4
_FOLDER_PREFIX = "skillhall-eval-"
_MIN_AGE = 60.0  # seconds
_MAX_FAILURES = 10  # in a row; then the provider is probably down


class FinishedRun(NamedTuple):
    """A run that has ended, and whether its result was stored before."""

    record: RunRecord
    is_reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRunReport:
    """The counts of all runs of a plan.

    `not_run` is not 0 if a limit stopped the runs.
    """

    iteration: EvalIteration
    planned: int
    reused: int
    statuses: Counter[RunStatus]  # of the runs that have a result
    skip_reasons: Counter[str]
    stop_reason: str
    spending: RunSpending  # of the new runs

    @property
    def not_run(self) -> int:
        """The number of runs without a result."""
        return self.planned - self.statuses.total()


@dataclass(kw_only=True)
class EvalRunner:
    """Runner of one plan.

    Each result is stored when its run ends; stored runs are not repeated.
    """

    plan: EvalPlan
    iteration: EvalIteration
    agent: RunAgent
    stored_runs: StoredRunIndex = field(default_factory=lambda: StoredRunIndex(()))
    jobs: int = DEFAULT_JOBS
    spending: RunSpending = field(default_factory=RunSpending)
    redactor: SecretRedactor = field(default_factory=SecretRedactor)
    on_finished: Callable[[FinishedRun], None] = lambda _: None

    def __post_init__(self) -> None:
        """Prepare the state of the run."""
        self._statuses: Counter[RunStatus] = Counter()
        self._skip_reasons: Counter[str] = Counter()
        self._reused = 0
        self._stop_reason = ""
        self._failures = 0  # in a row
        self._working: set[asyncio.Task[RunOutcome]] = set()
        self._slots = asyncio.Semaphore(self.jobs)
        self._preparing = asyncio.Lock()  # so that runs start in the order of the plan

    async def run(self) -> EvalRunReport:
        """Execute all runs that have no result yet.

        Raises: OSError, ModelUnavailable if no run could succeed, such as without an API key; Busy
        if another process does the runs.
        """
        with self.iteration.lock(), _create_folder() as folder:
            queue = iter([*enumerate(self._reuse_stored_runs())])
            folders = _RunFolders(self.plan, folder)
            try:
                async with self.agent, asyncio.TaskGroup() as workers:
                    # Half of the workers prepare runs while the agent executes those of the others.
                    for _ in range(2 * self.jobs):
                        workers.create_task(self._work(queue, folders))
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None
        return EvalRunReport(
            iteration=self.iteration,
            planned=len(self.plan.runs),
            reused=self._reused,
            statuses=self._statuses,
            skip_reasons=self._skip_reasons,
            stop_reason=self._stop_reason,
            spending=self.spending,
        )

    def _reuse_stored_runs(self) -> Iterator[PlannedRun]:
        """Copy stored results to the iteration; yield the runs without one."""
        for run in self.plan.runs:
            location = self.stored_runs.find(run)
            record = None if location is None else copy_stored_run(location, run, self.iteration)
            if record is not None:
                self._count(FinishedRun(record, is_reused=True))
            elif run.case.skip_reason:
                self._store(run, RunOutcome(status=RunStatus.SKIPPED, reason=run.case.skip_reason))
            else:
                yield run

    async def _work(self, queue: Iterator[tuple[int, PlannedRun]], folders: _RunFolders) -> None:
        """Execute runs until the queue is empty or a limit of all runs is reached."""
        while True:
            async with self._preparing:
                number, run = next(queue, (0, None))
                if run is None or self._is_stopped():
                    return
                task = await asyncio.to_thread(folders.create, number, run)
            try:
                async with self._slots:
                    outcome = None if self._is_stopped() else await self._do(run, task)
                    if outcome is not None:
                        await asyncio.to_thread(self._store, run, outcome, task.folder)
            finally:
                await asyncio.to_thread(shutil.rmtree, task.folder.parent, ignore_errors=True)

    async def _do(self, run: PlannedRun, task: RunTask) -> RunOutcome | None:
        """Return the outcome of a run; `None` if a limit of all runs was reached."""
        report_usage = partial(self.spending.update, run.key)
        working = asyncio.create_task(self.agent.run(task.with_report(report_usage)))
        self._working.add(working)
        try:
            outcome = await working
        except SpendingLimitReached as reached:
            self._stop(str(reached))
            return None
        except asyncio.CancelledError:
            if self._stop_reason:  # cancelled by `_stop`
                return None
            working.cancel()
            raise
        except Exception as error:
            self._stop(str(error))  # before the run of another worker starts
            raise
        finally:
            self._working.discard(working)
        try:
            self.spending.update(run.key, outcome.usage)
        except SpendingLimitReached as reached:
            self._stop(str(reached))  # this run has ended, so its result is stored
        self.spending.finish(run.key)
        return outcome

    def _is_stopped(self) -> bool:
        return bool(self._stop_reason)

    def _stop(self, reason: str) -> None:
        """Start no further runs, and cancel those that wait for a model."""
        self._stop_reason = self._stop_reason or reason
        for working in self._working:
            working.cancel()

    def _store(self, run: PlannedRun, outcome: RunOutcome, folder: Path | None = None) -> None:
        """Write the result of a run to the iteration. Raises: OSError."""
        status, reason = outcome.status, outcome.reason
        outputs: Mapping[str, tuple[bytes, int]] = {}
        if folder is not None:
            limit = self.plan.limits.max_output
            outputs, problem = collect_output_files(folder, run.case.inputs, limit)
            if problem and status is RunStatus.COMPLETED:
                status, reason = RunStatus.LIMITED, f"output files are left out: {problem}"
        record = RunRecord(
            key=run.key,
            status=status,
            reason=self.redactor.redact_values(reason),
            reply=self.redactor.redact_values(outcome.reply),
            loaded_skills=outcome.loaded_skills,
            usage=outcome.usage,
        )
        transcript = self.redactor.redact_transcript(outcome.transcript or [])
        self.iteration.write_run(record, run.digest, outputs, transcript)
        self._count(FinishedRun(record, is_reused=False))

    def _count(self, finished: FinishedRun) -> None:
        has_failed = finished.record.status is RunStatus.FAILED
        self._failures = self._failures + 1 if has_failed else 0
        if self._failures >= _MAX_FAILURES and not self._stop_reason:
            reason = finished.record.reason
            self._stop_reason = f"{_MAX_FAILURES} runs in a row failed: {reason}"
        self._statuses[finished.record.status] += 1
        if finished.record.status is RunStatus.SKIPPED:
            self._skip_reasons[finished.record.reason] += 1
        self._reused += finished.is_reused
        self.on_finished(finished)


class _RunFolders:
    """The folders of runs, below a temporary folder.

    Skills are written once for each arm.
    """

    def __init__(self, plan: EvalPlan, root: Path) -> None:
        self._plan = plan
        self._root = root
        self._skills: dict[Arm, Path] = {}
        # The names do not reveal the arm, because the agent sees them.
        for number, arm in enumerate(plan.arms):
            folder = root / f"skills-{number}"
            folder.mkdir()
            for version in plan.get_skills(arm):
                version.write_to(folder)
            self._skills[arm] = folder

    def create(self, number: int, run: PlannedRun) -> RunTask:
        """Create the folders of a run, with its input files. Raises: OSError."""
        base = self._root / f"run-{number}"
        folder, home = base / "work", base / "home"
        for path in (base, folder, home):
            path.mkdir()
        write_input_files(folder, run.case.inputs)
        return RunTask(
            prompt=run.case.case.prompt,
            folder=folder,
            home=home,
            skills=self._skills[run.key.arm],
            limits=self._plan.limits,
        )


@contextmanager
def _create_folder() -> Iterator[Path]:
    """Create a temporary folder, outside of all projects, and remove it at the end."""
    _remove_abandoned_folders()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX)).resolve()
    try:
        with WritableFolder(str(folder)) as locked, locked.lock():
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned_folders() -> None:
    """Remove the folders of processes that were killed: they are no longer locked."""
    if sys.platform == "win32":  # without locks
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_old = time.time() - status.st_mtime > _MIN_AGE  # a new one is not locked yet
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and is_old:
                with WritableFolder(str(folder)) as locked, locked.lock(waits=False):
                    shutil.rmtree(folder, ignore_errors=True)
