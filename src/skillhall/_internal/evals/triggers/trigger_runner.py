"""Asks trigger queries in parallel, within limits. Earlier runs are not repeated."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.evals.eval_records import Arm, RunKey
from skillhall._internal.evals.runs.run_limits import RunSpending, SpendingLimitReached
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.skill.evals.eval_file import TriggerQuery

_MAX_FAILURES = 5  # in a row; then the provider is probably down


class QueryAgent(Protocol):
    """An agent that replies to queries."""

    async def ask(self, query: str) -> TriggerReply:
        """Ask the query."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A run of a query; `known` if an earlier command has asked it."""

    query: TriggerQuery
    repeat: int
    digest: str
    known: TriggerReply | None

    @property
    def known_run(self) -> TriggerRun | None:
        """The run of an earlier command."""
        return None if self.known is None else self.to_run(self.known)

    def to_run(self, reply: TriggerReply) -> TriggerRun:
        """Return the run with this reply."""
        return TriggerRun(query=self.query, repeat=self.repeat, digest=self.digest, reply=reply)


def plan_trigger_runs(
    queries: Sequence[TriggerQuery],
    repeats: int,
    compute_digest: Callable[[str], str],
    known: Mapping[tuple[str, int], TriggerReply],
) -> list[PlannedQuery]:
    """Return the runs in order.

    `known` has replies by digest and number of the repeat. All queries are asked once before any is
    repeated, so that a limit does not leave some out.
    """
    digests = {query: compute_digest(query.query) for query in queries}
    return [
        PlannedQuery(query, repeat, digests[query], known.get((digests[query], repeat)))
        for repeat in range(1, repeats + 1)
        for query in queries
    ]


@dataclass(slots=True, kw_only=True)
class TriggerRunner:
    """Runs planned queries.

    `on_run` stores each new run before the next one starts.
    """

    agent: QueryAgent
    jobs: int
    spending: RunSpending  # of all runs of a command
    on_run: Callable[[TriggerRun], None]
    problem: str = ""  # why some runs were not started
    _failures: int = 0

    async def run(self, planned: Iterable[PlannedQuery]) -> list[TriggerRun]:
        """Return the known and the new runs. Raises: ModelUnavailable."""
        runs: list[TriggerRun] = []
        pending: deque[PlannedQuery] = deque()
        for one in planned:
            if one.known_run is None:
                pending.append(one)
            else:
                runs.append(one.known_run)

        async def work() -> None:
            while pending and not self._must_stop():
                one = pending.popleft()
                run = one.to_run(await self.agent.ask(one.query.query))
                self._failures = 0 if run.is_complete else self._failures + 1
                if self._failures == _MAX_FAILURES and not self.problem:
                    self.problem = f"{_MAX_FAILURES} runs in a row failed: {run.reply.reason}"
                self.on_run(run)
                runs.append(run)
                with suppress(SpendingLimitReached):  # the limit is checked before the next run
                    self.spending.update(_to_key(run), run.reply.usage)

        tasks = [asyncio.create_task(work()) for _ in range(self.jobs)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return runs

    def _must_stop(self) -> bool:
        try:
            self.spending.check()
        except SpendingLimitReached as reached:
            self.problem = self.problem or str(reached)
        return bool(self.problem)


def _to_key(run: TriggerRun) -> RunKey:
    # The digest differs for other descriptions of the same skill.
    return RunKey(f"{run.query.query}\n{run.digest}", Arm.WITH_SKILL, run.repeat)
