"""The interface of an agent that does the runs of an eval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from skillhall._internal.evals.eval_records import RunStatus, RunUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from skillhall._internal.evals.runs.run_limits import RunLimits

    Transcript: TypeAlias = list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """One task for an agent. The folders exist and belong to this run alone."""

    prompt: str
    folder: Path  # the working directory, with the input files
    home: Path  # an empty home folder
    skills: Path  # the folder with the skills of the agent, shared by runs; do not write there
    limits: RunLimits
    # Call it after each request. It raises SpendingLimitReached, which the agent must not catch.
    report_usage: Callable[[RunUsage], None] = lambda _: None

    def with_report(self, report_usage: Callable[[RunUsage], None]) -> RunTask:
        """Return a copy that reports its usage to this function."""
        return replace(self, report_usage=report_usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended. Output files are in the folder of the task."""

    status: RunStatus
    reason: str = ""
    reply: str = ""
    loaded_skills: tuple[str, ...] = ()
    usage: RunUsage = field(default_factory=RunUsage)
    transcript: Transcript | None = None


class RunAgent(Protocol):
    """An agent that performs tasks, one at a time or several at once."""

    @property
    def identity(self) -> Mapping[str, object]:
        """The kind, model and settings of the agent; a run depends on all of them."""

    async def __aenter__(self) -> Self:
        """Open the resources that runs share, such as connections."""

    async def __aexit__(self, *details: object) -> None:
        """Close the resources that runs share."""

    async def run(self, task: RunTask) -> RunOutcome:
        """Perform a task.

        Errors become outcomes, unless every run would fail the same way.
        Raises: SpendingLimitReached, SkillhallError for an error of every run.
        """
