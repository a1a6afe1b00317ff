"""Records of an eval: the runs of an agent and the verdicts about their outputs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Arm(StrEnum):
    """Condition of a run: the agent has the skill, no skill, or another version of it.

    The values are the folder names that the guide of agentskills.io uses.
    """

    WITH_SKILL = "with_skill"
    WITHOUT_SKILL = "without_skill"
    OLD_SKILL = "old_skill"


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"  # the agent or its model reported an error
    LIMITED = "limited"  # a limit of time, tokens, cost or output size was reached
    SKIPPED = "skipped"  # the case needs scripts, which are not allowed


class Verdict(StrEnum):
    """The result of one assertion."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not_judged"  # no grader could decide, or the evidence is invalid


class RunKey(NamedTuple):
    """The identity of a run in a plan: a case, an arm and the number of the repeat."""

    case_id: str
    arm: Arm
    repeat: int  # starts at 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """Usage of a run. `cost` is in US dollars; `None` if the price is not known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One finished run. Its output files are in the folder `outputs` of the run."""

    key: RunKey
    status: RunStatus
    reason: str = ""  # why the run did not complete
    reply: str = ""  # the last message of the agent
    loaded_skills: tuple[str, ...] = ()
    usage: RunUsage = RunUsage()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionResult:
    """The verdict about one assertion, with its evidence."""

    text: str
    verdict: Verdict
    evidence: str
    grader: str  # "check", "judge" or "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """A run and the verdicts about its assertions."""

    run: RunRecord
    results: tuple[AssertionResult, ...]
    judge_usage: RunUsage = RunUsage()  # of the model that judged
    judge: str = ""  # the name of this model; "" without one

    @property
    def pass_rate(self) -> float | None:
        """The share of judged assertions that passed; `None` if none was judged."""
        judged = [one for one in self.results if one.verdict is not Verdict.NOT_JUDGED]
        return (
            sum(one.verdict is Verdict.PASSED for one in judged) / len(judged) if judged else None
        )

    @property
    def outcome(self) -> bool | None:
        """Whether the task was solved; `None` if that is not known.

        A task is solved if the run completed and every assertion passed.
        """
        if self.run.status in {RunStatus.FAILED, RunStatus.SKIPPED} or not self.results:
            return None
        verdicts = {one.verdict for one in self.results}
        if self.run.status is RunStatus.LIMITED or Verdict.FAILED in verdicts:
            return False
        return None if Verdict.NOT_JUDGED in verdicts else True


def add_usages(usages: Iterable[RunUsage]) -> RunUsage:
    """Return the sum of the usages. Its cost is `None` if any of the costs is unknown."""
    found = [*usages]
    # A usage of nothing costs nothing. External agents report a duration, but no tokens or cost.
    costs = [one.cost for one in found if one.cost is not None or one != RunUsage()]
    known = [cost for cost in costs if cost is not None]
    return RunUsage(
        requests=sum(one.requests for one in found),
        input_tokens=sum(one.input_tokens for one in found),
        output_tokens=sum(one.output_tokens for one in found),
        duration_ms=sum(one.duration_ms for one in found),
        cost=sum(known) if len(known) == len(costs) else None,
    )
