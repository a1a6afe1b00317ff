"""The eval of one skill: its plan, workspace, and steps from runs to results."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from skillhall._internal.evals.runs.eval_runner import DEFAULT_JOBS, EvalRunner
from skillhall._internal.evals.runs.recording import copy_recorded_triggers, find_recording
from skillhall._internal.evals.runs.run_estimate import estimate_judge, estimate_runs
from skillhall._internal.evals.runs.run_limits import RunSpending
from skillhall._internal.evals.runs.stored_runs import StoredRunIndex, open_iteration
from skillhall._internal.evals.runs.transcript import SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
    from skillhall._internal.evals.run_agents.run_agent import RunAgent
    from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedRun
    from skillhall._internal.evals.runs.eval_runner import EvalRunReport, FinishedRun
    from skillhall._internal.evals.runs.run_estimate import JudgeEstimate, RunEstimate
    from skillhall._internal.evals.runs.run_limits import ModelPrice


@dataclass(frozen=True, kw_only=True)
class SkillEval:
    """The plan of a skill's eval, and the stored results that it can use."""

    plan: EvalPlan
    path: str  # of the skill
    workspace: EvalWorkspace
    recorded: Sequence[EvalIteration] = ()  # a recording: the only results that are used
    uses_stored_runs: bool = True

    @cached_property
    def iterations(self) -> Sequence[EvalIteration]:
        """The iterations whose results are used, the oldest first."""
        if self.recorded:
            return (find_recording(self.recorded),)
        return self.workspace.iterations() if self.uses_stored_runs else ()

    @cached_property
    def stored_runs(self) -> StoredRunIndex:
        """The results that need no new run."""
        return StoredRunIndex(self.iterations)

    @property
    def missing_runs(self) -> list[PlannedRun]:
        """The runs without a stored result."""
        return [
            run
            for run in self.plan.runs
            if not run.case.skip_reason and self.stored_runs.find(run) is None
        ]

    def estimate(self, price: ModelPrice | None) -> RunEstimate:
        """Estimate the usage of the missing runs."""
        return estimate_runs(self.plan, self.missing_runs, self.iterations, price)

    def estimate_judge(self, *, is_compared: bool) -> JudgeEstimate:
        """Estimate the usage of a judge for the missing runs."""
        return estimate_judge(self.missing_runs, is_compared=is_compared)

    async def run(self, agent: RunAgent, options: RunningOptions) -> EvalRunReport:
        """Execute the missing runs. Raises: OSError, SkillhallError for an error of every run."""
        iteration = (
            open_iteration(self.workspace, self.plan)
            if self.uses_stored_runs
            else self.workspace.create_iteration(self.plan.serialize(), self.plan.repeats)
        )
        runner = EvalRunner(
            plan=self.plan,
            iteration=iteration,
            agent=agent,
            stored_runs=self.stored_runs,
            jobs=options.jobs,
            spending=options.spending,
            redactor=options.redactor,
            on_finished=options.on_finished,
        )
        report = await runner.run()
        copy_recorded_triggers(self.recorded, iteration)
        return report


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningOptions:
    """Options for the runs of one or more skills, which share the spending."""

    jobs: int = DEFAULT_JOBS
    spending: RunSpending = field(default_factory=RunSpending)
    redactor: SecretRedactor = field(default_factory=SecretRedactor)
    on_finished: Callable[[FinishedRun], None] = lambda _: None
