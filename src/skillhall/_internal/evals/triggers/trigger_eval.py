"""Measures the triggers of skills with one agent, and stores the results."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.evals.eval_records import Arm, RunKey
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.runs.run_limits import SpendingLimitReached
from skillhall._internal.evals.triggers.evaluated_skills import EvaluatedSkills
from skillhall._internal.evals.triggers.trigger_files import (
    TriggerJournal,
    TriggerResult,
    find_result,
    open_trigger_iteration,
    read_known_replies,
    write_trigger_result,
)
from skillhall._internal.evals.triggers.trigger_records import MAX_REQUESTS
from skillhall._internal.evals.triggers.trigger_runner import (
    PlannedQuery,
    QueryAgent,
    TriggerRunner,
    plan_trigger_runs,
)
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.strict_json import render_json
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.evals.eval_records import RunUsage
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.runs.run_limits import RunSpending
    from skillhall._internal.evals.triggers.trigger_records import (
        TriggerReply,
        TriggerRun,
        TriggerTarget,
    )


@dataclass(frozen=True, slots=True)
class TriggerPlan:
    """The runs for one skill, with those of earlier commands."""

    target: TriggerTarget
    skills: EvaluatedSkills
    runs: tuple[PlannedQuery, ...]

    @property
    def new_runs(self) -> int:
        """The number of runs that still have to be executed."""
        return sum(run.known is None for run in self.runs)

    def with_known(self, known: Mapping[tuple[str, int], TriggerReply]) -> TriggerPlan:
        """Return a copy in which these runs are known."""
        runs = [replace(run, known=known.get((run.digest, run.repeat))) for run in self.runs]
        return replace(self, runs=tuple(runs))

    def estimate_input_tokens(self, *, only_new: bool = True) -> int:
        """Return the estimated input tokens of the runs, with one request for each."""
        return sum(
            estimate_tokens(_render_request(self.skills, run.query.query))
            for run in self.runs
            if run.known is None or not only_new
        )


def _find_no_agent(_: EvaluatedSkills) -> QueryAgent:
    raise NotImplementedError("set `open_agent` before measuring")


@dataclass(slots=True, kw_only=True)
class TriggerEval:
    """Plans and executes the trigger runs of one command."""

    skills: AgentSkills
    run_directory: str  # an empty folder, which the agent sees instead of the working directory
    model_name: str
    repeats: int
    spending: RunSpending  # of all runs of the command
    jobs: int = 4
    results_folder: str = ""  # where results are stored; "" is next to the skill
    open_agent: Callable[[EvaluatedSkills], QueryAgent] = _find_no_agent
    on_run: Callable[[], None] = lambda: None
    new_runs: int = 0
    problem: str = ""  # why some runs were not executed

    def plan(self, target: TriggerTarget, description: str = "") -> TriggerPlan:
        """Return the runs for a skill; `description` replaces that of the skill."""
        name = target.name if description else ""
        skills = EvaluatedSkills(self.skills, self.run_directory, name, description)
        known = read_known_replies(self._find_workspace(target).iterations())
        runs = plan_trigger_runs(
            target.queries, self.repeats, lambda query: self._compute_digest(skills, query), known
        )
        return TriggerPlan(target, skills, tuple(runs))

    def spend(self, skill: str, usage: RunUsage) -> None:
        """Add the usage of a request that is not a run; a reached limit stops the command."""
        try:
            self.spending.add(RunKey(skill, Arm.WITH_SKILL, 0), usage)
        except SpendingLimitReached as reached:
            self.problem = self.problem or str(reached)

    async def measure(self, plan: TriggerPlan, *, is_stored: bool = True) -> TriggerResult:
        """Execute the new runs of a plan and return the result.

        Without `is_stored`, the runs are stored, but not as the result of the skill.
        Raises: Busy if another command executes the runs; ModelUnavailable, OSError.
        """
        workspace = self._find_workspace(plan.target)
        iteration = open_trigger_iteration(workspace, plan.target)
        journal = TriggerJournal(iteration)
        with journal.lock():
            # Another command may have executed some of the runs since they were planned.
            current = plan.with_known(read_known_replies(workspace.iterations()))
            result = await self._measure(current, journal)
            if is_stored:
                write_trigger_result(iteration, result)
        return result

    def replay(self, target: TriggerTarget, recorded: Sequence[EvalIteration]) -> TriggerResult:
        """Return the result of recorded runs, without a model, and store it.

        A run counts if its query and everything that the agent saw are unchanged.
        Raises: ConfigInvalid if no trigger queries are recorded; OSError, SkillhallError.
        """
        earlier = find_result(recorded)
        if earlier is None:
            folder = str(recorded[-1].path.parent)
            raise ConfigInvalid(folder, "the folder has no recorded runs of trigger queries")
        recording = replace(self, model_name=earlier.model, repeats=earlier.repeats)
        plan = recording.plan(target).with_known(read_known_replies(recorded))
        if plan.new_runs:
            count = f"{plan.new_runs} of {len(plan.runs)} runs"
            self.problem = (
                self.problem
                or f"{count} of {target.name} are not recorded for its queries and listing"
            )
        runs = [run for one in plan.runs if (run := one.known_run) is not None]
        result = recording.build_result(plan, runs)
        if runs:
            iteration = open_trigger_iteration(self._find_workspace(target), target)
            write_trigger_result(iteration, result)
        return result

    async def _measure(self, plan: TriggerPlan, journal: TriggerJournal) -> TriggerResult:
        def store(run: TriggerRun) -> None:
            journal.append(run)
            self.new_runs += 1
            self.on_run()

        agent = self.open_agent(plan.skills)
        runner = TriggerRunner(agent=agent, jobs=self.jobs, spending=self.spending, on_run=store)
        runs = await runner.run(plan.runs)
        self.problem = self.problem or runner.problem
        return self.build_result(plan, runs)

    def build_result(self, plan: TriggerPlan, runs: Sequence[TriggerRun]) -> TriggerResult:
        """Return the result of the runs of a plan."""
        target = plan.target
        order = {query: number for number, query in enumerate(target.queries)}
        return TriggerResult(
            skill=target.name,
            skill_digest=target.digest,
            model=self.model_name,
            repeats=self.repeats,
            catalog=tuple(plan.skills.current_view().skills),
            runs=tuple(sorted(runs, key=lambda run: (order[run.query], run.repeat))),
        )

    def _find_workspace(self, target: TriggerTarget) -> EvalWorkspace:
        return EvalWorkspace.of_skill(target.folder, self.results_folder)

    def _compute_digest(self, skills: EvaluatedSkills, query: str) -> str:
        """Return a digest of what a reply depends on: listing, tools, query and model."""
        value = {
            # The digest must be the same in another checkout of the same project.
            "request": _render_request(skills, query).replace(
                self.skills.settings.working_directory, "."
            ),
            "model": self.model_name,
            "max_requests": MAX_REQUESTS,
        }
        return f"sha256:{hashlib.sha256(render_json(value)).hexdigest()}"


def _render_request(skills: EvaluatedSkills, query: str) -> str:
    """Return the texts of the first request to the model."""
    tools = AgentTools(skills)
    tools.task = query
    schemas = [[one.name, one.description, one.parameters] for one in tools.tools()]
    return "\n".join((tools.system_prompt(), render_json(schemas).decode(), query))
