"""Records of trigger evals: the queries of a skill and the runs that asked them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import RunStatus, RunUsage

if TYPE_CHECKING:
    from skillhall._internal.skill.evals.eval_file import TriggerQuery

_NO_USAGE = RunUsage()
MAX_REQUESTS = 8  # model requests for one query; an agent that needs more has not found the skill


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerReply:
    """How an agent reacted to a query: the skills that it loaded first.

    There are several if the model loaded them in one step.
    """

    status: RunStatus
    loaded_skills: tuple[str, ...] = ()
    reason: str = ""  # why the run did not complete
    reply: str = ""  # the start of the reply
    usage: RunUsage = _NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRun:
    """One query, asked once. `digest` identifies all that the reply depends on."""

    query: TriggerQuery
    repeat: int  # starts at 1
    digest: str
    reply: TriggerReply

    @property
    def is_complete(self) -> bool:
        """Whether the run shows which skill the agent loads."""
        return self.reply.status is RunStatus.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTarget:
    """A skill whose triggers are measured."""

    name: str  # as the agent sees it
    folder: str
    digest: str  # of the skill's files
    queries: tuple[TriggerQuery, ...]
