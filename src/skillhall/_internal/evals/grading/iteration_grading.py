"""Grading of all runs of an iteration.

Each verdict is stored as soon as it is known, so none is paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import GradedRun, RunUsage, Verdict, add_usages
from skillhall._internal.evals.grading.grader import find_grader, grade_assertions
from skillhall._internal.evals.grading_files import (
    StoredVerdict,
    StoredVerdicts,
    digest_record,
    read_verdicts,
    write_verdicts,
)
from skillhall._internal.evals.runs.run_limits import SpendingLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from skillhall._internal.evals.eval_records import RunKey
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.grading.grader import Grader
    from skillhall._internal.evals.run_files import StoredRun
    from skillhall._internal.skill.evals.eval_assertion import EvalAssertion
    from skillhall._internal.skill.evals.eval_file import EvalCase

DEFAULT_JOBS = 4


class GradingProgress(NamedTuple):
    """A graded run, and whether all of its verdicts were stored already."""

    graded: GradedRun
    is_reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingReport:
    """The counts of a grading."""

    runs: int
    reused: int  # runs whose verdicts were all stored already
    verdicts: Mapping[Verdict, int]
    judge_usage: RunUsage  # of new verdicts
    stop_reason: str = ""  # the limit that was reached


@dataclass(slots=True, kw_only=True)
class IterationGrading:
    """Grades the runs of an iteration whose cases are known."""

    iteration: EvalIteration
    cases: Mapping[str, EvalCase]
    graders: Sequence[Grader]
    judge: str = ""  # the name of the model that judges
    jobs: int = DEFAULT_JOBS
    # Gets the usage of the judge for each run. It may raise SpendingLimitReached.
    spend: Callable[[RunKey, RunUsage], None] = lambda _key, _usage: None
    on_graded: Callable[[GradingProgress], None] = lambda _: None
    _verdicts: Counter[Verdict] = field(default_factory=Counter)
    _usages: list[RunUsage] = field(default_factory=list)
    _runs: int = 0
    _reused: int = 0
    _stop_reason: str = ""

    async def grade(self) -> GradingReport:
        """Grade all runs.

        Raises: OSError, ModelUnavailable if no request to the judge can succeed.
        """
        runs = self.iteration.iter_runs()
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.jobs):
                    workers.create_task(self._work(runs))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        return GradingReport(
            runs=self._runs,
            reused=self._reused,
            verdicts=self._verdicts,
            judge_usage=add_usages(self._usages),
            stop_reason=self._stop_reason,
        )

    async def _work(self, runs: Iterator[StoredRun]) -> None:
        for stored in runs:
            if self._stop_reason:
                return
            case = self.cases.get(stored.record.key.case_id)
            if case is not None:
                await self._grade_run(case, stored)

    async def _grade_run(self, case: EvalCase, stored: StoredRun) -> None:
        run = stored.record
        earlier = read_verdicts(self.iteration, run)
        known = {one.digest: one for one in earlier.verdicts} if earlier else {}
        digests = [self._digest(case, assertion, known) for assertion in case.assertions]
        missing = [
            assertion
            for assertion, digest in zip(case.assertions, digests, strict=True)
            if not self._is_usable(known.get(digest), assertion)
        ]
        grades = await grade_assertions(case, stored, missing, self.graders)
        new = iter(grades.assertions)
        verdicts = []
        for assertion, digest in zip(case.assertions, digests, strict=True):
            usable = known.get(digest)
            if usable is None or not self._is_usable(usable, assertion):
                graded = next(new)
                usable = StoredVerdict(graded.result, digest, graded.is_final)
            verdicts.append(usable)
        usages = [grades.judge_usage, *([earlier.judge_usage] if earlier else [])]
        judge = self.judge if grades.judge_usage.requests else earlier.judge if earlier else ""
        result = StoredVerdicts(digest_record(run), tuple(verdicts), add_usages(usages), judge)
        is_reused = not missing and earlier is not None
        if result != earlier:
            await asyncio.to_thread(write_verdicts, self.iteration, run, result)
        self._count(stored, result, grades.judge_usage, is_reused=is_reused)

    def _count(
        self, stored: StoredRun, result: StoredVerdicts, usage: RunUsage, *, is_reused: bool
    ) -> None:
        self._runs += 1
        self._reused += is_reused
        self._usages.append(usage)
        self._verdicts.update(one.result.verdict for one in result.verdicts)
        results = tuple(one.result for one in result.verdicts)
        graded = GradedRun(run=stored.record, results=results, judge_usage=result.judge_usage)
        self.on_graded(GradingProgress(graded, is_reused))
        try:
            if usage.requests:
                self.spend(stored.record.key, usage)
        except SpendingLimitReached as reached:
            self._stop_reason = str(reached)

    def _digest(
        self, case: EvalCase, assertion: EvalAssertion, known: Mapping[str, StoredVerdict]
    ) -> str:
        """Return the digest of an assertion and its grader."""
        grader = find_grader(assertion, self.graders)
        if grader is not None:
            return _digest_assertion(case, assertion, grader.identity)
        # Without a grader, an earlier verdict about the same assertion is still valid.
        prefix = f"{_digest_assertion(case, assertion)}:"
        return next((digest for digest in known if digest.startswith(prefix)), prefix)

    def _is_usable(self, stored: StoredVerdict | None, assertion: EvalAssertion) -> bool:
        if stored is None:
            return False
        return stored.is_final or find_grader(assertion, self.graders) is None


def _digest_assertion(case: EvalCase, assertion: EvalAssertion, identity: str = "") -> str:
    check = assertion.check
    parts = [case.prompt, case.expected_output, assertion.text, repr(check)]
    base = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    if not identity:
        return base
    return f"{base}:{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
